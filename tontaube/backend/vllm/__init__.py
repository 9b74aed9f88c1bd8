"""Stages run by vLLM: one engine a stage, in this process, stepped by our scheduler.

Of these modules ``engine``, ``model``, ``sampling`` and ``stage`` import vllm, which is not in the
default install; ``installation`` and ``capacity`` do without.
"""
