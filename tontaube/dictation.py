"""Text that is still being written → segments, on their way from the reader's loop to the
scheduler's.

A segment's text is final when it comes. The first is spoken at once; a later one waits a moment for
its successor, which tells CB0 whether the text goes on and how.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tontaube.errors import DeadlineExceeded, InvalidRequest
from tontaube.stages.semantic import Texts
from tontaube.types import Segment

_PATIENCE = 0.3  # seconds for a successor; its listener has audio meanwhile


class Dictation:
    """One stream's segments as they come. ``put`` and ``end`` are for the reader's loop."""

    def __init__(self, writer: asyncio.AbstractEventLoop, text_timeout: float) -> None:
        self._writer = writer
        self._timeout = text_timeout
        self._arrived: asyncio.Queue[Segment | Exception | None] = asyncio.Queue()

    def put(self, segment: Segment) -> None:
        """The next segment, not marked as the last."""
        self._send(segment)

    def end(self, error: Exception | None = None) -> None:
        """There is no more text, or it broke off."""
        self._send(error)

    def _send(self, item: Segment | Exception | None) -> None:
        if not self._writer.is_closed():
            self._writer.call_soon_threadsafe(self._arrived.put_nowait, item)

    async def texts(self) -> Texts:
        """The segments with their successors as far as these are known; for the scheduler's loop.
        Raises DeadlineExceeded when no text comes for too long."""
        current = await self._text()
        if current is None:
            raise InvalidRequest("there is nothing to speak in the text", "text")
        while current is not None:
            try:
                following = await self._next(_PATIENCE if current.index else 0.0)
            except TimeoutError:  # it is spoken without knowing what comes
                yield current, None
                current = await self._text()
            else:
                yield replace(current, last=following is None), following
                current = following

    async def _text(self) -> Segment | None:
        try:
            return await self._next(self._timeout)
        except TimeoutError:
            limit = self._timeout
            raise DeadlineExceeded(f"no more text came within {limit:g} seconds") from None

    async def _next(self, seconds: float) -> Segment | None:
        if not self._arrived.empty():
            item = self._arrived.get_nowait()
        else:
            async with asyncio.timeout(seconds):
                item = await self._arrived.get()
        if isinstance(item, Exception):
            raise item
        return item
