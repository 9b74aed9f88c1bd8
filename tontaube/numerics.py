"""Settings and a device → where and in which types the stages compute, decided from these alone.

The codec computes in float32 on every device: its sums decide codes, and it is small.
"""

from __future__ import annotations

import torch

from tontaube.errors import Unavailable

_BY_NAME = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def stage_dtype(wanted: str, device: torch.device) -> torch.dtype:
    """The type of the stages' activations, keys and values, and of their weights if not int8.

    ``auto`` is bfloat16, in which the released weights were trained, on a GPU; and float32 on a
    CPU, where it alone gives a request the same codes whatever else is spoken beside it.
    """
    if wanted == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return _BY_NAME[wanted]


def int8_weights(wanted: str, device: torch.device) -> bool:
    """Whether the stages' matrices are kept in int8. Raises Unavailable where that is not made."""
    if wanted == "int8" and device.type != "cpu":
        raise Unavailable(f"int8 weights are for the CPU, not for {device}: TONTAUBE_WEIGHTS=full")
    return wanted == "int8"


def stage_device(engine: str, device: torch.device, *, vllm: bool) -> torch.device:
    """Where the stages run if the codec runs on ``device``: on the same GPU with vLLM, which is
    taken where it is installed (``vllm``) and nothing else is asked for; else on the CPU."""
    on_gpu = device.type == "cuda" and (engine == "vllm" or (engine == "auto" and vllm))
    return device if on_gpu else torch.device("cpu")
