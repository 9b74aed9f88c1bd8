"""An application → the uvicorn server that serves it: heads of requests are bounded in time and
size, every refusal has OpenAI's shape, and stopping leaves nobody hanging.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from api.errors import Problem, StreamBroken, problem
from api.limits import Limits
from tontaube.errors import Busy

# Seconds that an idle connection is kept: longer than clients (httpx, OpenAI's SDKs: 5) and proxies
# (60) keep theirs, or a request that is sent while the server closes the connection is lost.
_IDLE = 75
_GRACE = 5  # seconds that streams may go on for when the server is asked to stop
_BYTES_PER_CHARACTER = 4  # of UTF-8
_SLOW = Problem(408, "the request's head took too long to arrive", code="request_timeout")
_LONG = Problem(431, "the request's head is too long", code="request_too_large")
_GARBLED = Problem(400, "this is not HTTP/1.1", code="invalid_request")
_STOPPING = Busy("the server is being stopped; try again in a moment", retry_after=5)


def server_of(app: ASGIApp, limits: Limits | None = None, **config: Any) -> uvicorn.Server:
    """A server of ``app``; ``config`` goes to uvicorn (host, port, log_level …)."""
    limits = limits or Limits()
    return uvicorn.Server(
        uvicorn.Config(
            Ending(app),
            http=partial(GuardedProtocol, limits=limits),  # type: ignore[arg-type]
            ws="websockets-sansio",
            ws_max_size=_BYTES_PER_CHARACTER * limits.message_characters,
            ws_per_message_deflate=False,  # sound does not get smaller by it, bombs do
            access_log=False,  # a line per request is logged already, with more in it
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=_GRACE,
            **config,
        )
    )


class Ending:
    """ASGI wrapper: what the server cancels when it stops, or what broke off, ends without noise.

    An answer that has begun is cut, which its reader sees; one that has not is a 503.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except StreamBroken:
            pass  # returning early makes uvicorn drop the connection
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            if not begun:
                await problem(_STOPPING).response()(scope, receive, send)


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1, but a head that dawdles or does not end is refused."""

    def __init__(self, *, limits: Limits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._between_requests():
            self._await_head()  # uvicorn's own timer ends at the first byte
        super().data_received(data)
        if self._head_timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes:
                self._refuse(_LONG)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(_GARBLED)

    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        if self._head_timer is None and not self.transport.is_closing():
            self._head_bytes = 0
            self._head_timer = self.loop.call_later(self._limits.head_timeout, self._refuse, _SLOW)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, found: Problem) -> None:
        """Answer and close. An answer that is under way is cut instead."""
        self._stop_waiting()
        if self.transport.is_closing():
            return
        unanswered = self.cycle is not None and not self.cycle.response_started
        if self._between_requests() or (unanswered and not self.pipeline):
            response = found.response()
            lines = [b"%s: %s\r\n" % header for header in response.raw_headers]
            head = [STATUS_LINE[found.status], *lines, b"connection: close\r\n\r\n"]
            self.transport.write(b"".join([*head, bytes(response.body)]))
        self.transport.close()
