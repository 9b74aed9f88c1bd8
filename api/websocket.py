"""``WS /v1/audio/speech/stream``: text in as it is written, audio out as it is spoken.

Text frames are JSON (``api.messages``); every ``audio`` message is followed by one binary frame,
its PCM (24 kHz, signed 16-bit little-endian, mono). A socket carries several contexts at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from api.context import Context
from api.disconnects import Disconnected
from api.errors import Problem, problem, validation_problem
from api.messages import MESSAGE, Append, Cancel, End, Flush, Start
from api.service import Service
from tontaube.errors import InvalidRequest, TontaubeError
from tontaube.types import AudioChunk

_TOO_BIG = 1009
_IDLE = 4408


def router(service: Service) -> APIRouter:
    """The one socket route."""
    routes = APIRouter(prefix="/v1/audio/speech")

    @routes.websocket("/stream")
    async def converse(socket: WebSocket) -> None:
        await socket.accept()
        await Conversation(service, socket).run()

    return routes


class Conversation:
    """One socket: reads messages, keeps its contexts, writes one answer at a time."""

    def __init__(self, service: Service, socket: WebSocket) -> None:
        self._service = service
        self._socket = socket
        self._contexts: dict[str, Context] = {}
        self._writing = asyncio.Lock()
        self._writes: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._last_use = self._loop.time()

    async def run(self) -> None:
        """Until the client leaves or stays silent too long; then every context is freed."""
        try:
            while (message := await self._next()) is not None:
                await self._handle(message)
        except Disconnected:
            pass
        finally:
            for write in self._writes:
                write.cancel()
            contexts = list(self._contexts.values())
            await asyncio.gather(*(context.stop() for context in contexts))

    async def _next(self) -> str | None:
        """The next text frame; None after the socket was closed by us. Raises Disconnected."""
        limits = self._service.limits
        while True:
            idle = self._loop.time() - self._last_use
            try:
                async with asyncio.timeout(max(0.0, limits.idle_timeout - idle)):
                    frame = await self._socket.receive()
            except TimeoutError:
                if self._loop.time() - self._last_use < limits.idle_timeout:
                    continue  # it was answered in the meantime
                await self._close(_IDLE, "nothing was said for too long")
                return None
            self._last_use = self._loop.time()
            if frame["type"] == "websocket.disconnect":
                raise Disconnected
            text: str | None = frame.get("text")
            if text is None:
                await self.tell_problem(None, InvalidRequest("send JSON in text frames"))
            elif len(text) > limits.message_characters:
                await self._close(_TOO_BIG, "the message is too long")
                return None
            else:
                return text

    async def _handle(self, text: str) -> None:
        try:
            message = MESSAGE.validate_python(json.loads(text))
        except ValidationError as error:
            found = validation_problem(error.errors(include_url=False, include_input=False))
            await self._tell_error(None, found)
        except (ValueError, RecursionError):
            await self._tell_error(None, Problem(400, "not valid JSON", code="invalid_json"))
        else:
            try:
                await self._dispatch(message)
            except TontaubeError as error:
                await self.tell_problem(message.context, error)

    async def _dispatch(self, message: Start | Append | Flush | End | Cancel) -> None:
        """Raises InvalidRequest and what starting a context raises."""
        if isinstance(message, Start):
            self._start(message)
            return
        context = self._contexts.get(message.context)
        if context is None:
            raise InvalidRequest(f"there is no context {message.context!r}; send start", "context")
        match message:
            case Append():
                context.append(message.text)
            case Flush():
                context.flush()
            case End():
                context.end()
            case Cancel():
                await context.cancel(message.played_samples)

    def _start(self, message: Start) -> None:
        service = self._service
        if message.context in self._contexts:
            raise InvalidRequest(f"the context {message.context!r} is already open", "context")
        if len(self._contexts) >= service.limits.contexts:
            raise InvalidRequest(
                f"at most {service.limits.contexts} contexts may be open on a socket", "context"
            )
        request = service.checked(message, None)
        context = Context(message, request, service, self)
        self._contexts[message.context] = context
        context.begin(self._socket.scope["state"]["record"].id)

    # --- what contexts tell the client ---

    async def tell(self, kind: str, context: str | None, **fields: Any) -> None:
        """Send one JSON message. Raises Disconnected, as all that send do."""
        await self._write(_encoded(kind, context, fields))

    async def tell_audio(
        self, context: str, chunk: AudioChunk, data: bytes, fields: dict[str, Any]
    ) -> None:
        """Send a piece of audio: where it belongs, then its bytes, with nothing in between."""
        head = _encoded("audio", context, fields | {"samples": len(chunk.samples)})
        await self._write(head, data)

    async def tell_problem(self, context: str | None, error: Exception) -> None:
        """Send an error in OpenAI's shape."""
        found = problem(error)
        if found.param == "input":  # the HTTP body's word
            found = replace(found, param="text")
        await self._tell_error(context, found)

    async def _tell_error(self, context: str | None, found: Problem) -> None:
        await self.tell("error", context, error=found.body())

    def forget(self, context: str) -> None:
        """The context is over; its id may be used again."""
        del self._contexts[context]

    async def _write(self, *frames: str | bytes) -> None:
        """Frames with nothing in between, even if the context that sends them is cancelled."""
        write = asyncio.create_task(self._write_all(frames))
        self._writes.add(write)
        write.add_done_callback(self._written)
        await asyncio.shield(write)

    async def _write_all(self, frames: tuple[str | bytes, ...]) -> None:
        async with self._writing:
            self._last_use = self._loop.time()
            try:
                for frame in frames:
                    kind = "text" if isinstance(frame, str) else "bytes"
                    await self._socket.send({"type": "websocket.send", kind: frame})
            except (WebSocketDisconnect, OSError, RuntimeError):  # left, or closed by us
                raise Disconnected from None

    def _written(self, write: asyncio.Task[None]) -> None:
        self._writes.discard(write)
        if not write.cancelled():
            write.exception()  # whoever waited for it has got it

    async def _close(self, code: int, reason: str) -> None:
        await self.tell_problem(None, InvalidRequest(reason))
        with contextlib.suppress(WebSocketDisconnect, OSError, RuntimeError):
            await self._socket.close(code, reason)


def _encoded(kind: str, context: str | None, fields: dict[str, Any]) -> str:
    return json.dumps({"type": kind, "context": context, **fields})
