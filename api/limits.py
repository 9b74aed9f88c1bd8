"""Who may ask, how often and how much: bearer keys, a rate per client, sizes and times of bodies.

All of it is decided before a body is parsed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import problem

_MOST_CLIENTS = 10_000  # whose rate is remembered
_MULTIPART_OVERHEAD = 64 * 2**10
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may do. Times are in seconds."""

    api_keys: tuple[str, ...] = ()  # none: everybody may ask
    origins: tuple[str, ...] = ()  # of browsers' pages, beside our own
    requests_per_minute: int = 0  # 0: no limit
    head_bytes: int = 64 * 2**10  # about: what arrives at once is read at once
    head_timeout: float = 10.0  # from a connection's or a head's first byte to the head's last
    body_bytes: int = 2 * 2**20
    batch_bytes: int = 8 * 2**20
    reference_bytes: int = 10 * 2**20
    body_timeout: float = 30.0  # from a body's first byte to its last
    upload_timeout: float = 300.0
    contexts: int = 8  # of a socket that speak at once
    message_characters: int = 64 * 2**10  # of a socket's message
    idle_timeout: float = 300.0  # of a socket that neither asks nor is answered

    def body_limit(self, path: str) -> tuple[int, float]:
        """The most bytes of a body sent to ``path``, and the seconds it may take."""
        if path.startswith("/v1/audio/voices"):
            return self.reference_bytes + _MULTIPART_OVERHEAD, self.upload_timeout
        size = self.batch_bytes if path.endswith("/batch") else self.body_bytes
        return size, self.body_timeout


class RateLimiter:
    """A token bucket a client: ``per_minute`` at once, refilled evenly. Forgets the idle ones."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, as of

    def wait(self, client: str) -> float:
        """0 and the request counts; or the seconds until it may be asked again."""
        if self._per_minute == 0:
            return 0.0
        now, rate = self._clock(), self._per_minute / 60
        tokens, since = self._buckets.pop(client, (float(self._per_minute), now))
        tokens = min(float(self._per_minute), tokens + (now - since) * rate)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / rate


class Gate:
    """ASGI middleware that applies Limits to everything under ``/v1`` and to ``/metrics``."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._keys = [_digest(key) for key in limits.api_keys]
        self._rate = RateLimiter(limits.requests_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        body = None
        if scope["type"] == "http":
            body = _Body(scope, self._limits)
            send = partial(body.send, send, receive)
            receive = partial(body.receive, receive)
        try:
            self._admit(HTTPConnection(scope))
            if body is not None:
                body.require_plain_and_bounded()
        except HTTPException as error:
            found = problem(error)
            scope["state"]["record"].outcome = found.code or "refused"
            await found.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admit(self, connection: HTTPConnection) -> None:
        """Raises HTTPException 401, 403 or 429."""
        path = connection.url.path
        if not (path.startswith("/v1/") or path == "/metrics"):
            return
        client = connection.client.host if connection.client else "unknown"
        if self._keys:
            client = self._key_of(connection)
        asks = connection.scope["type"] == "websocket" or connection.scope["method"] == "POST"
        if connection.scope["type"] == "websocket":
            self._require_known_origin(connection)
        if asks and (seconds := self._rate.wait(client)) > 0:
            headers = {"Retry-After": str(math.ceil(seconds))}
            raise HTTPException(429, "too many requests; try again later", headers)

    def _key_of(self, connection: HTTPConnection) -> str:
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        digest = _digest(given.strip())
        known = [hmac.compare_digest(digest, key) for key in self._keys]  # always all of them
        if scheme.lower() != "bearer" or not any(known):
            text = "give a valid API key: Authorization: Bearer <key>"
            raise HTTPException(401, text, {"WWW-Authenticate": "Bearer"})
        return digest.hex()

    def _require_known_origin(self, connection: HTTPConnection) -> None:
        """A browser lets any page open a socket to us, so foreign pages are refused here."""
        origin = connection.headers.get("origin")
        if origin is None or "*" in self._limits.origins or origin in self._limits.origins:
            return
        if origin.partition("://")[2] != connection.headers.get("host"):
            raise HTTPException(403, "this page's origin is not allowed")


class _Body:
    """The body of one request on its way in: ended when it is too large (413) or dawdles (408).

    An answer given before the body is complete closes the connection, or the client might go on
    sending for ever; but not at once: what is still on its way would reset the connection before
    the answer was read.
    """

    def __init__(self, scope: Scope, limits: Limits) -> None:
        self._limit, self._seconds = limits.body_limit(scope["path"])
        self._headers = Headers(scope=scope)
        self._received = 0
        self._deadline = asyncio.get_running_loop().time() + self._seconds
        chunked = "transfer-encoding" in self._headers
        self._complete = not chunked and self._headers.get("content-length", "0") == "0"

    def require_plain_and_bounded(self) -> None:
        """Raises HTTPException 400, 413 or 415 for what the headers say."""
        if self._headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise HTTPException(415, "compressed bodies are not accepted; send it as it is")
        declared = self._headers.get("content-length", "0")
        if not (declared.isascii() and declared.isdigit()):
            raise HTTPException(400, "the header Content-Length is not a number")
        if len(declared) > 15 or int(declared) > self._limit:
            raise self._too_large()

    async def receive(self, inner: Receive) -> Message:
        if self._complete:
            return await inner()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await inner()
        except TimeoutError:
            raise HTTPException(408, "the body took too long to arrive") from None
        self._received += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._received > self._limit:
            self._complete = False
            raise self._too_large()
        return message

    async def send(self, inner: Send, rest: Receive, message: Message) -> None:
        if self._complete:
            await inner(message)
        elif message["type"] == "http.response.start":
            MutableHeaders(scope=message)["connection"] = "close"
            await inner(message)
        else:
            last = not message.get("more_body", False)
            await inner({**message, "more_body": True})
            if last:
                await self._linger(rest)
                await inner({"type": "http.response.body", "body": b"", "more_body": False})

    async def _linger(self, rest: Receive) -> None:
        """Throw away what still comes: for a while, so much, or until the client has left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                received = 0
                while received < _LINGER_BYTES:
                    message = await rest()
                    received += len(message.get("body", b""))
                    if not message.get("more_body", False):  # its end, or the client's
                        return

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body is larger than {self._limit} bytes")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
