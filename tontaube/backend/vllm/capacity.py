"""A memory budget, four stages' sizes and what runs beside them → how many sequences run at once,
and their KV memory.

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
"""Memory that all of us may take of the device, by profile; ``auto``: what is free."""

BLOCK = 32  # tokens; what vLLM's attention on CPUs and GPUs both take

PREFILL = 512  # tokens of inputs, a step

# What vLLM takes of a GPU for each engine beside weights, KV memory and activations. None of these
# was measured here: they are what its sources set aside, or logs of other models say.
_WORKSPACE = 400 * 2**20  # FlashInfer's, the largest of the attention kernels it may choose
_GRAPH = 2 * 2**20  # a captured graph, for each block: one whole, one in pieces
_CONTEXT = GIB // 2  # kernels that CUDA loads when they are first used, once a process

_LOGIT = 24  # bytes while codes are drawn: float32, sorted, its order, and two sums of it


@dataclass(frozen=True, slots=True)
class StageSize:
    """What a stage takes, in bytes."""

    weights: int
    token: int  # keys and values of one
    context: int  # tokens of the longest sequence
    activations: int  # of a prefill step
    logits: int  # of one sequence
    blocks_deep: int  # of the network

    @classmethod
    def of(cls, config: StageConfig, context: int, dtype: torch.dtype) -> StageSize:
        """``context``: input and codes of the longest sequence, in tokens."""
        heads = config.num_attention_heads + 2 * config.num_key_value_heads
        # of a token: the residual stream, its norm and two results of the same width; queries,
        # keys and values before and after they turn; gate, up and their product
        width = 4 * config.hidden_size + 2 * heads * config.head_dim + 3 * config.intermediate_size
        return cls(
            weights=stage_parameters(config) * dtype.itemsize,
            token=token_bytes(config, dtype),
            context=context,
            activations=PREFILL * width * dtype.itemsize,
            logits=config.head_size * _LOGIT,
            blocks_deep=config.num_hidden_layers,
        )

    @property
    def blocks(self) -> int:
        """Of KV memory, that the longest sequence takes."""
        return -(-(self.context + 1) // BLOCK)

    def kv_bytes(self, sequences: int) -> int:
        """KV memory for so many of the longest sequences, and one block that vLLM sets aside."""
        return (self.blocks * sequences + 1) * BLOCK * self.token

    def working(self, sequences: int, *, on_gpu: bool) -> int:
        """What steps of so many sequences take beside weights and KV memory."""
        step = self.activations + sequences * self.logits
        return step + (self._graphs(sequences) + _WORKSPACE if on_gpu else 0)

    def _graphs(self, sequences: int) -> int:
        """vLLM captures steps of 1, 2, 4, 8, 16, 24 … sequences, up to twice as many as run."""
        captured = 3 + -(-2 * sequences // 8)
        return captured * self.blocks_deep * _GRAPH

    def whole(self, sequences: int, *, on_gpu: bool) -> int:
        """All of it."""
        working = self.working(sequences, on_gpu=on_gpu)
        return self.weights + self.kv_bytes(sequences) + working


@dataclass(frozen=True, slots=True)
class Beside:
    """What else runs on the device, in bytes: the codec's weights, which are there before the
    stages and so are missing from what is free, and what it works in."""

    loaded: int = 0
    working: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What one stage's engine may use."""

    sequences: int  # that run at once; further jobs wait
    tokens: int  # of one sequence: its input and its codes
    kv_bytes: int
    prefill_tokens: int = PREFILL
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
    beside: Beside,
    *,
    profile: str = "auto",
    sequences: int,
    on_gpu: bool,
) -> list[Capacity]:
    """Divide the memory: as many sequences a stage as fit the profile, at most ``sequences``.

    Raises Unavailable, with the numbers, for an unknown profile or too little memory.
    """
    budget = _budget(profile, memory, beside)
    fixed = beside.working + (_CONTEXT if on_gpu else 0)

    def needed(streams: int) -> int:
        return fixed + sum(size.whole(streams, on_gpu=on_gpu) for size in sizes)

    fitting = [streams for streams in range(1, sequences + 1) if needed(streams) <= budget]
    if not fitting:
        raise Unavailable(
            f"the vLLM engine needs {_gib(needed(1))} for one stream of this model and has "
            f"{_gib(budget)} (TONTAUBE_PROFILE={profile}, {_gib(memory.free)} free): end what else "
            "uses the device, choose a larger profile or device, or TONTAUBE_ENGINE=torch"
        )
    return [
        Capacity(
            sequences=fitting[-1],
            tokens=size.context,
            kv_bytes=size.kv_bytes(fitting[-1]),
            memory_share=size.whole(fitting[-1], on_gpu=on_gpu) / memory.total,
        )
        for size in sizes
    ]


def _budget(profile: str, memory: Memory, beside: Beside) -> int:
    """What stages may take, and the codec to work in."""
    if profile == "auto":
        return memory.free
    if profile not in PROFILES:
        names = ", ".join(("auto", *PROFILES))
        raise Unavailable(f"unknown TONTAUBE_PROFILE {profile!r}; choose one of: {names}")
    # a card of 24 GiB never has all of them free
    return min(PROFILES[profile] - beside.loaded, memory.free)


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
