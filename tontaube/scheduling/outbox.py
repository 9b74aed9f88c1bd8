"""Finished audio on its way from the scheduler's event loop to a reader's: bounded, never blocking.

The two loops may be the same one (tests, simulation) or run in two threads.
"""

from __future__ import annotations

import asyncio
from collections import deque

from tontaube.types import AudioChunk


class Outbox:
    """One stream's chunks. Methods of the writer are for the scheduler's loop, the others for the
    loop the outbox was made in."""

    def __init__(self, writer: asyncio.AbstractEventLoop, capacity_seconds: float) -> None:
        self._reader_loop = asyncio.get_running_loop()
        self._writer_loop = writer
        self._capacity = capacity_seconds
        # the reader's side
        self._chunks: deque[AudioChunk] = deque()
        self._ended = False
        self._error: Exception | None = None
        self._arrival = asyncio.Event()
        # the writer's side
        self._untaken = 0.0  # seconds
        self._room = asyncio.Event()
        self._room.set()

    # --- writer ---

    def put(self, chunk: AudioChunk, seconds: float) -> None:
        """Hand a chunk over; it is accepted in any case, see ``room``."""
        self._untaken += seconds
        if self._untaken >= self._capacity:
            self._room.clear()
        self._to_reader(chunk, None, False)

    async def room(self) -> None:
        """Wait until the reader has taken enough."""
        await self._room.wait()

    @property
    def full(self) -> bool:
        """Whether ``room`` would wait."""
        return not self._room.is_set()

    def end(self, error: Exception | None) -> None:
        """There will be no more chunks; the reader meets ``error`` after the last one."""
        self._to_reader(None, error, True)

    def _to_reader(self, chunk: AudioChunk | None, error: Exception | None, end: bool) -> None:
        if not self._reader_loop.is_closed():  # else nobody is left to read
            self._reader_loop.call_soon_threadsafe(self._arrive, chunk, error, end)

    def _took(self, seconds: float) -> None:
        self._untaken -= seconds
        if self._untaken < self._capacity:
            self._room.set()

    # --- reader ---

    def _arrive(self, chunk: AudioChunk | None, error: Exception | None, end: bool) -> None:
        if chunk is not None:
            self._chunks.append(chunk)
        if end and not self._ended:
            self._ended, self._error = True, error
        self._arrival.set()

    async def get(self, sample_rate: int) -> AudioChunk | None:
        """The next chunk, None after the last one. Raises what ended the stream early."""
        while not self._chunks:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return None
            self._arrival.clear()
            await self._arrival.wait()
        chunk = self._chunks.popleft()
        if not self._writer_loop.is_closed():
            self._writer_loop.call_soon_threadsafe(self._took, len(chunk.samples) / sample_rate)
        return chunk

    def close(self) -> None:
        """Drop what was not taken; later arrivals are dropped at the end of the stream."""
        self._chunks.clear()
