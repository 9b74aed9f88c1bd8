"""One listener of an engine in this process: how soon it hears something, and how much."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tontaube.engine import Engine
from tontaube.types import SpeechRequest


@dataclass(frozen=True, slots=True)
class Heard:
    """Seconds from the request to its first audio and to its end, and of its audio."""

    first: float
    spent: float
    audio: float


async def listen(engine: Engine, text: str, seed: int) -> Heard:
    """Hear a text to its end. Another seed each time, or a repeated phrase is remembered."""
    start, first, samples = time.perf_counter(), 0.0, 0
    async with engine.stream(SpeechRequest(text=text, seed=seed)) as stream:
        async for chunk in stream:
            first = first or time.perf_counter() - start
            samples += len(chunk.samples)
    spent = time.perf_counter() - start
    return Heard(first, spent, samples / engine.description.sample_rate)
