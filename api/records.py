"""Around every request: an id, one line in the log, and a plain 500 where nobody foresaw an error.

The line says who spoke how much and how fast; the text only where the settings ask for it.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.disconnects import Disconnected
from api.errors import INTERNAL, StreamBroken

logger = logging.getLogger("tontaube.api")

_SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_STARTS = ("http.response.start", "websocket.http.response.start", "websocket.accept")
_QUIET = frozenset({"/health", "/ready", "/metrics", "/v1/test"})


@dataclass(slots=True)
class Record:
    """What the log line of one request says; routes fill it in."""

    id: str
    status: int | None = None
    outcome: str = "ok"
    voice: str | None = None
    characters: int | None = None
    seconds: float | None = None  # of audio
    ttfa: float | None = None  # seconds from the request to its first audio
    rtf: float | None = None
    text: str | None = None

    def line(self, method: str, path: str, took: float) -> str:
        fields: dict[str, str | float | None] = {
            "id": self.id,
            "method": method,
            "path": path,
            "status": self.status,
            "outcome": self.outcome,
            "took": took,
            "voice": self.voice,
            "characters": self.characters,
            "seconds": self.seconds,
            "ttfa": self.ttfa,
            "rtf": self.rtf,
            "text": self.text,
        }
        return json.dumps(
            {
                name: round(value, 4) if isinstance(value, float) else value
                for name, value in fields.items()
                if value is not None
            }
        )


class Records:
    """ASGI middleware that gives each request a Record in ``scope["state"]["record"]``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        wanted = Headers(scope=scope).get("x-request-id", "")
        record = Record(wanted if _SAFE_ID.fullmatch(wanted) else f"req_{uuid.uuid4().hex}")
        scope.setdefault("state", {})["record"] = record
        started = time.monotonic()
        try:
            await self._watched(scope, receive, send, record)
        finally:
            level = logging.DEBUG if scope["path"] in _QUIET else logging.INFO
            took = time.monotonic() - started
            method = scope.get("method", "WS")
            logger.log(level, "%s", record.line(method, scope["path"], took))

    async def _watched(self, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
        async def send_with_id(message: Message) -> None:
            if message["type"] in _STARTS:
                MutableHeaders(scope=message)["x-request-id"] = record.id
                record.status = message.get("status", 101)
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Disconnected:
            record.outcome = "cancelled"
        except StreamBroken as broken:
            logger.warning("request %s broke off: %s", record.id, broken)
            raise  # the server must see it, to drop the connection
        except Exception:
            record.outcome = "internal_error"
            if scope["type"] == "websocket" or record.status is not None:
                raise
            logger.exception("request %s failed", record.id)
            await INTERNAL.response()(scope, receive, send_with_id)
        except BaseException:
            record.outcome = "cancelled"
            raise
