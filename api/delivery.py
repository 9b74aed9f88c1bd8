"""Encoded pieces of a stream → where they go: a body of bytes, events, or a file in memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from starlette.types import Send

from api.disconnects import Disconnected
from api.errors import INTERNAL, StreamBroken, problem
from api.ports import SpeechStream
from api.records import logger
from tontaube.types import AudioChunk, Segment

_STREAMED = ((b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"))


class Line:
    """The body of one streamed response; its headers leave with the first bytes."""

    def __init__(self, send: Send, media_type: str, sample_rate: int) -> None:
        self._send = send
        self._headers = [
            (b"content-type", media_type.encode()),
            (b"x-sample-rate", str(sample_rate).encode()),
            *_STREAMED,
        ]
        self.begun = False

    async def write(self, data: bytes, last: bool = False) -> None:
        """Send more; waits while the reader is slow. Raises Disconnected."""
        try:
            if not self.begun:
                self.begun = True
                start = {"type": "http.response.start", "status": 200, "headers": self._headers}
                await self._send(start)
            body = {"type": "http.response.body", "body": data, "more_body": not last}
            await self._send(body)
        except OSError:
            raise Disconnected from None


class Audio:
    """Plain bytes of the file. After the first of them a failure can only break the line."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def begin(self, stream: SpeechStream) -> None:
        pass

    async def piece(self, chunk: AudioChunk, data: bytes) -> None:
        if data:
            await self._line.write(data)

    async def end(self, tail: bytes, stream: SpeechStream) -> None:
        await self._line.write(tail, last=True)

    async def failed(self, error: Exception) -> None:
        if isinstance(error, Disconnected) or not self._line.begun:
            raise error
        log_unforeseen(error)
        raise StreamBroken(problem(error).message) from None


class Events:
    """Server-sent events: audio with its place in text and time, then usage, or an error."""

    def __init__(self, line: Line, sample_rate: int) -> None:
        self._line = line
        self._sample_rate = sample_rate
        self._segments: Sequence[Segment] = ()

    def begin(self, stream: SpeechStream) -> None:
        self._segments = stream.segments

    async def piece(self, chunk: AudioChunk, data: bytes) -> None:
        place = progress(chunk, self._sample_rate) | {"segments": len(self._segments)}
        await self._event("delta", audio=_base64(data), **place)

    async def end(self, tail: bytes, stream: SpeechStream) -> None:
        if tail:
            await self._event("delta", audio=_base64(tail))
        await self._event("done", last=True, usage=usage(stream))

    async def failed(self, error: Exception) -> None:
        if isinstance(error, Disconnected) or not self._line.begun:
            raise error
        log_unforeseen(error)
        await self._event("error", last=True, error=problem(error).body())

    async def _event(self, kind: str, last: bool = False, **fields: Any) -> None:
        event = json.dumps({"type": f"speech.audio.{kind}", **fields})
        await self._line.write(f"data: {event}\n\n".encode(), last)


class Collected:
    """The whole file in memory."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.usage: dict[str, int] = {}

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)

    def begin(self, stream: SpeechStream) -> None:
        pass

    async def piece(self, chunk: AudioChunk, data: bytes) -> None:
        self._pieces.append(data)

    async def end(self, tail: bytes, stream: SpeechStream) -> None:
        self._pieces.append(tail)
        self.usage = usage(stream)

    async def failed(self, error: Exception) -> None:
        raise error


def progress(chunk: AudioChunk, sample_rate: int) -> dict[str, Any]:
    """For captions: a piece's segment (a range of characters of the request's text), how many
    characters are spoken by its end, and its seconds of audio."""
    segment = chunk.segment
    return {
        "segment": {"index": segment.index, "start": segment.start, "end": segment.end},
        "text_end": chunk.text_end,
        "start": round(chunk.start / sample_rate, 4),
        "end": round((chunk.start + len(chunk.samples)) / sample_rate, 4),
    }


def usage(stream: SpeechStream) -> dict[str, int]:
    """OpenAI's usage object."""
    used = stream.usage
    return {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
    }


def log_unforeseen(error: Exception) -> None:
    """Leave a trace of an error whose words the client does not get to see."""
    if problem(error) is INTERNAL:
        logger.error("a stream failed", exc_info=error)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
