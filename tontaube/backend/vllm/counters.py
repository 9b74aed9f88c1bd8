"""What vLLM itself counts of one engine, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineCounters:
    """Its sequences and its memory, at one moment."""

    running: int
    waiting: int
    kv_usage: float  # 0..1, of blocks that belong to a sequence
