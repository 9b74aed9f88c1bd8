"""A server with the page over a fake engine whose recordings are really read."""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.api_fakes import RATE, FakeEngine, FakeStream, FakeVoices
from tontaube.codec.reference import read_reference
from tontaube.types import AudioChunk, Samples, SpeechRequest


class ReadVoices(FakeVoices):
    """Silence, noise and what is no recording are refused as the real library refuses them."""

    async def read(self, audio: bytes) -> Samples:
        return await asyncio.to_thread(read_reference, audio)


class WaitingStream:
    """A stream that waits where its engine says: for its turn, or in the midst of speaking."""

    def __init__(self, stream: FakeStream, engine: PageEngine) -> None:
        self._stream = stream
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def queue_position(self) -> int:
        return self._engine.position

    async def __aiter__(self) -> AsyncIterator[AudioChunk]:
        engine, given = self._engine, 0
        while engine.position:  # noqa: ASYNC110 - a test ends it
            await asyncio.sleep(0.01)
        async for chunk in self._stream:
            yield chunk
            given += 1
            while engine.hold_after is not None and given >= engine.hold_after:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@dataclass
class PageEngine(FakeEngine):
    """``position``: the place in line of its streams; 0: they are spoken. ``hold_after``: chunks
    after which a stream makes no more for now, so that tests need not be fast."""

    voices: FakeVoices = field(default_factory=ReadVoices)
    position: int = 0
    hold_after: int | None = None

    @asynccontextmanager
    async def stream(
        self, request: SpeechRequest, text: AsyncIterable[str] | None = None
    ) -> AsyncIterator[WaitingStream]:
        async with super().stream(request, text) as stream:
            yield WaitingStream(stream, self)


async def eventually(condition: Callable[[], bool]) -> None:
    """Look again and again; browsers and Gradio are slow on a busy machine."""
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def wav(samples: Samples) -> bytes:
    """Float samples at 24 kHz → a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes((np.clip(samples, -1, 1) * 32_767).astype("<i2").tobytes())
    return file.getvalue()


def murmur(seconds: float) -> Samples:
    """Something like a voice: harmonics of a gliding pitch, in syllables, over a little noise."""
    time = np.arange(round(seconds * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(120 + 30 * np.sin(2 * np.pi * 0.7 * time)) / RATE
    voice = sum(np.sin(k * phase) / k for k in range(1, 12))
    syllables = np.clip(np.sin(2 * np.pi * 2.1 * time), 0, 1) * (np.sin(0.9 * time) > -0.8)
    noise = np.random.default_rng(0).normal(0, 0.001, len(time))
    return (0.15 * voice * syllables + noise).astype(np.float32)
