"""One context of a socket: appended text → pieces → the engine's stream → audio messages."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any, Protocol

from api.delivery import log_unforeseen, progress, usage
from api.disconnects import Disconnected
from api.encoders import pcm16
from api.messages import Start
from api.metrics import Meter
from api.pieces import Pieces
from api.ports import SpeechStream
from api.records import Record, logger
from api.service import Service
from api.spoken import SpokenMap
from tontaube.errors import GenerationFailed, InvalidRequest
from tontaube.types import AudioChunk, SpeechRequest


class Listener(Protocol):
    """Whom a context tells what happens to it."""

    async def tell(self, kind: str, context: str | None, **fields: Any) -> None: ...
    async def tell_audio(
        self, context: str, chunk: AudioChunk, data: bytes, fields: dict[str, Any]
    ) -> None: ...
    async def tell_problem(self, context: str | None, error: Exception) -> None: ...
    def forget(self, context: str) -> None: ...


class Context:
    """Speaks in a task of its own, so that appending, flushing and cancelling never wait for it."""

    def __init__(
        self, start: Start, request: SpeechRequest, service: Service, listener: Listener
    ) -> None:
        self._id = start.context
        self._flush_after = start.flush_after
        self._request = request
        self._service = service
        self._listener = listener
        segmentation = service.engine.description.segmentation
        self._cutter = Pieces(segmentation.max_characters)
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()
        self._characters = 0
        self._ended = False
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._spoken = SpokenMap()

    def begin(self, socket_id: str) -> None:
        """Start speaking (or waiting for text); ``socket_id`` is for the log."""
        self._task = asyncio.create_task(self._run(Record(f"{socket_id}/{self._id}", 101)))

    def append(self, text: str) -> None:
        """Take more text. Raises InvalidRequest after the end, or beyond the most characters."""
        self._require_open()
        if self._characters + len(text) > self._service.max_characters:
            most = self._service.max_characters
            raise InvalidRequest(f"a context takes at most {most} characters", "text")
        self._characters += len(text)
        self._service.metrics.characters.inc(len(text))
        self._give(self._cutter.push(text))
        self._stop_timer()
        if self._cutter.waiting:
            self._timer = asyncio.get_running_loop().call_later(self._flush_after, self._pause)

    def flush(self) -> None:
        """Have everything said that was appended. Raises InvalidRequest after the end."""
        self._require_open()
        self._pause()

    def end(self) -> None:
        """No more text will come. Raises InvalidRequest if that was said before."""
        self._require_open()
        self._pause()
        self._ended = True
        self._pieces.put_nowait(None)

    async def cancel(self, played_samples: int | None) -> None:
        """Stop now and tell how far the speech came."""
        await self.stop()
        spoken = self._spoken.until(played_samples)
        await self._listener.tell("cancelled", self._id, spoken=spoken)

    async def stop(self) -> None:
        """Free everything; returns when it is free."""
        self._stop_timer()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _require_open(self) -> None:
        if self._ended:
            raise InvalidRequest(f"the text of context {self._id!r} has already ended", "context")

    def _pause(self) -> None:
        self._stop_timer()
        self._give(self._cutter.flush())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give(self, pieces: list[str]) -> None:
        for piece in pieces:
            self._pieces.put_nowait(piece)

    async def _text(self, meter: Meter) -> AsyncIterator[str]:
        while (piece := await self._pieces.get()) is not None:
            meter.asked()
            yield piece

    async def _run(self, record: Record) -> None:
        began = time.monotonic()
        try:
            with self._service.metrics.stream(0, dictated=True) as meter:
                try:
                    async with self._service.engine.stream(
                        self._request, self._text(meter)
                    ) as stream:
                        await self._speak(stream, meter)
                except Disconnected:
                    raise asyncio.CancelledError from None
                except Exception as error:
                    meter.outcome = record.outcome = "failed"
                    log_unforeseen(error)
                    with contextlib.suppress(Disconnected):
                        await self._listener.tell_problem(self._id, error)
        except asyncio.CancelledError:
            record.outcome = "cancelled"
            raise
        finally:
            self._stop_timer()
            self._listener.forget(self._id)
            record.voice, record.characters = meter.voice, self._characters
            record.seconds, record.ttfa = meter.seconds, meter.ttfa
            took = time.monotonic() - began
            logger.info("%s", record.line("WS", "/v1/audio/speech/stream", took))

    async def _speak(self, stream: SpeechStream, meter: Meter) -> None:
        meter.voice = stream.voice.id
        rate = self._service.sample_rate
        await self._listener.tell(
            "started",
            self._id,
            voice=stream.voice.id,
            language=stream.language,
            style=stream.style,
            sample_rate=rate,
        )
        async for chunk in stream:
            meter.emitted(len(chunk.samples))
            data = pcm16(chunk.samples)
            self._spoken.add(chunk)  # before: once begun, sending it cannot be cancelled
            await self._listener.tell_audio(self._id, chunk, data, progress(chunk, rate))
            meter.sent()
        if self._characters and meter.samples == 0:
            raise GenerationFailed("the model gave no audio for this text")
        await self._listener.tell(
            "done", self._id, usage=usage(stream), spoken=self._spoken.until(None)
        )
