"""A memory budget and four stages' sizes → how many sequences run at once, and their KV memory.

Every sequence's keys and values are paid for in advance, up to the stage's longest context: a job
that runs is never preempted for lack of memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tontaube.errors import Unavailable
from tontaube.footprint import stage_parameters, token_bytes
from tontaube.tokens import StageConfig

GIB = 2**30
PROFILES = {"low-vram": 24 * GIB, "balanced": 28 * GIB, "high-throughput": 32 * GIB}
"""Memory that the engines may take of the device, by profile; ``auto``: what is free."""

BLOCK = 32  # tokens; what vLLM's attention on CPUs and GPUs both take

# Beside weights and KV memory. Estimates: codec, w2v-BERT and VibeVoice of the released model
# (2.6 GiB of weights) with their activations, the CUDA context; then per stage the activations of
# a step and the captured graphs.
_SHARED_RESERVE = 4 * GIB
_STAGE_RESERVE = 1 * GIB
_CPU_STAGE_RESERVE = GIB // 4  # no graphs


@dataclass(frozen=True, slots=True)
class StageSize:
    """What a stage takes, in bytes."""

    weights: int
    token: int  # keys and values of one
    context: int  # tokens of the longest sequence

    @classmethod
    def of(cls, config: StageConfig, context: int, dtype: torch.dtype) -> StageSize:
        """``context``: input and codes of the longest sequence, in tokens."""
        weights = stage_parameters(config) * dtype.itemsize
        return cls(weights, token_bytes(config, dtype), context)

    @property
    def blocks(self) -> int:
        """Of KV memory, that the longest sequence takes."""
        return -(-(self.context + 1) // BLOCK)

    def kv_bytes(self, sequences: int) -> int:
        """KV memory for so many of the longest sequences, and one block that vLLM sets aside."""
        return (self.blocks * sequences + 1) * BLOCK * self.token


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What one stage's engine may use."""

    sequences: int  # that run at once; further jobs wait
    tokens: int  # of one sequence: its input and its codes
    kv_bytes: int
    prefill_tokens: int = 512  # of inputs, a step
    memory_share: float = 0.1  # of the device's memory, for weights, KV memory and graphs


@dataclass(frozen=True, slots=True)
class Memory:
    """A device's, in bytes."""

    free: int
    total: int

    @classmethod
    def of(cls, device: torch.device) -> Memory:
        """What ``device`` has now: a GPU's own, or the machine's."""
        if device.type == "cuda":
            return cls(*torch.cuda.mem_get_info(device))
        page = os.sysconf("SC_PAGE_SIZE")
        total = os.sysconf("SC_PHYS_PAGES") * page
        # counts what caches of files would give back, which SC_AVPHYS_PAGES does not
        meminfo = Path("/proc/meminfo")
        known = meminfo.read_text("ascii") if meminfo.is_file() else ""
        found = re.search(r"MemAvailable:\s+(\d+) kB", known)
        return cls(int(found[1]) * 1024 if found else total, total)


def plan(
    sizes: Sequence[StageSize],
    memory: Memory,
    *,
    profile: str = "auto",
    sequences: int,
    on_gpu: bool,
) -> list[Capacity]:
    """Divide the memory: as many sequences a stage as fit the profile, at most ``sequences``.

    Raises Unavailable, with the numbers, for an unknown profile or too little memory.
    """
    budget = _budget(profile, memory)
    stage_reserve = _STAGE_RESERVE if on_gpu else _CPU_STAGE_RESERVE
    fixed = _SHARED_RESERVE if on_gpu else 0
    fixed += sum(size.weights + stage_reserve for size in sizes)
    fitting = [n for n in range(1, sequences + 1) if fixed + _kv(sizes, n) <= budget]
    if not fitting:
        needed = fixed + _kv(sizes, 1)
        raise Unavailable(
            f"the vLLM engine needs {_gib(needed)} for one stream of this model and has "
            f"{_gib(budget)} (TONTAUBE_PROFILE={profile}, {_gib(memory.free)} free): end what else "
            "uses the device, choose a larger profile or device, or TONTAUBE_ENGINE=torch"
        )
    return [
        Capacity(
            sequences=fitting[-1],
            tokens=size.context,
            kv_bytes=size.kv_bytes(fitting[-1]),
            memory_share=(size.weights + size.kv_bytes(fitting[-1]) + stage_reserve) / memory.total,
        )
        for size in sizes
    ]


def _budget(profile: str, memory: Memory) -> int:
    if profile == "auto":
        return memory.free
    if profile not in PROFILES:
        names = ", ".join(("auto", *PROFILES))
        raise Unavailable(f"unknown TONTAUBE_PROFILE {profile!r}; choose one of: {names}")
    return min(PROFILES[profile], memory.free)  # a card of 24 GiB never has all of them free


def _kv(sizes: Sequence[StageSize], sequences: int) -> int:
    return sum(size.kv_bytes(sequences) for size in sizes)


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
