"""``/v1/audio/speech``: a request's text → an audio file or events, while it is being spoken."""

from __future__ import annotations

import base64
import json
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.disconnects import Disconnected, until_disconnected
from api.documentation import SPEECH_RESPONSES
from api.encoders import FORMATS
from api.errors import INTERNAL, StreamBroken, problem
from api.metrics import Meter
from api.ports import SpeechStream
from api.records import Record, logger
from api.schemas import SpeechBody
from api.service import Delivery, Job, Service, note, speak
from tontaube.types import AudioChunk, SpeechRequest

_STREAMED = ((b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"))


def router(service: Service) -> APIRouter:
    """The route for one request at a time."""
    routes = APIRouter(prefix="/v1/audio", tags=["speech"])

    @routes.post(
        "/speech",
        summary="Speak a text",
        response_class=Response,
        responses=SPEECH_RESPONSES,
    )
    async def create_speech(body: SpeechBody) -> Response:
        return SpeechResponse(service, service.checked(body), body)

    return routes


class SpeechResponse(Response):
    """Speaks while it is being sent; when the client leaves, the stream is freed."""

    def __init__(self, service: Service, request: SpeechRequest, body: SpeechBody) -> None:
        super().__init__()
        self._service = service
        self._events = body.stream_format == "sse"
        self._job = Job(request, body.encoding, whole=not (body.stream or self._events))
        self._format = FORMATS[body.encoding]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record: Record = Request(scope).state.record
        with self._service.metrics.stream(len(self._job.request.text)) as meter:
            try:
                await until_disconnected(receive, self._speak(scope, receive, send, meter))
                if meter.outcome != "ok":
                    record.outcome = meter.outcome
            finally:
                note(record, meter, self._job, self._service)

    async def _speak(self, scope: Scope, receive: Receive, send: Send, meter: Meter) -> None:
        if not self._job.whole:
            await speak(self._service, self._job, self._delivery(send), meter)
            return
        file = Collected()
        await speak(self._service, self._job, file, meter)
        headers = {
            "x-sample-rate": str(self._service.sample_rate),
            "x-audio-duration": f"{meter.seconds:.3f}",
            "x-rtf": f"{meter.rtf or 0.0:.4f}",
        }
        await Response(file.data, 200, headers, self._format.media_type)(scope, receive, send)

    def _delivery(self, send: Send) -> Delivery:
        if self._events:
            line = Line(send, "text/event-stream; charset=utf-8", self._service.sample_rate)
            return Events(line, self._service.sample_rate)
        return Audio(Line(send, self._format.media_type, self._service.sample_rate))


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

    async def piece(self, chunk: AudioChunk, data: bytes) -> None:
        await self._event("delta", audio=_base64(data), **progress(chunk, self._sample_rate))

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

    async def piece(self, chunk: AudioChunk, data: bytes) -> None:
        self._pieces.append(data)

    async def end(self, tail: bytes, stream: SpeechStream) -> None:
        self._pieces.append(tail)
        self.usage = usage(stream)

    async def failed(self, error: Exception) -> None:
        raise error


def progress(chunk: AudioChunk, sample_rate: int) -> dict[str, Any]:
    """For captions: the characters of the request's text and the seconds of audio of a piece."""
    segment = chunk.segment
    return {
        "segment": {"index": segment.index, "start": segment.start, "end": segment.end},
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
