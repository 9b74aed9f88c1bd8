"""Exceptions → HTTP answers in OpenAI's error shape; the one table of both.

Nothing that fails again in the same way is a retryable status: OpenAI's SDK tries 408, 409, 429
and everything from 500 on twice more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tontaube.errors import (
    Busy,
    DeadlineExceeded,
    GenerationFailed,
    InvalidRequest,
    TontaubeError,
    Unavailable,
    UnknownVoice,
)

_PARAMS = {
    "text": "input",
    "audio": "audio_sample",
}  # where the wire's word differs from the domain's

HTTP_CODES: Mapping[int, str] = MappingProxyType(
    {
        401: "invalid_api_key",
        403: "origin_not_allowed",
        404: "not_found",
        405: "method_not_allowed",
        408: "request_timeout",
        413: "request_too_large",
        415: "unsupported_encoding",
        429: "rate_limit_exceeded",
    }
)


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a client sees it."""

    status: int
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """``{"message", "type", "param", "code"}``, the value of ``error``."""
        return {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }

    def response(self) -> Response:
        # ASCII escapes: a lone surrogate from the request must not break its own error message.
        content = json.dumps({"error": self.body()})
        return Response(content, self.status, dict(self.headers), "application/json")


class ModelNotFound(TontaubeError):
    """The request names a model that is not served here."""

    def __init__(self, model: str, known: Sequence[str]) -> None:
        super().__init__(f"model {model[:80]!r} does not exist; choose one of: {', '.join(known)}")


class VoiceNotFound(TontaubeError):
    """A path names a voice that does not exist."""


class StreamBroken(Exception):
    """A stream failed after its first byte: the connection must not end as if all were well."""


INTERNAL = Problem(
    500, "something went wrong inside the server", "server_error", code="internal_error"
)


def _retry_after(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def problem(error: Exception) -> Problem:
    """The table. Whatever is not in it is an internal error, described without its words."""
    message = str(error)
    match error:
        case UnknownVoice():
            return Problem(400, message, param="voice", code="voice_not_found")
        case InvalidRequest():
            param = _PARAMS.get(error.field or "", error.field)
            return Problem(400, message, param=param, code="invalid_value")
        case ModelNotFound():
            return Problem(404, message, param="model", code="model_not_found")
        case VoiceNotFound():
            return Problem(404, message, param="voice", code="voice_not_found")
        case Busy():
            headers = _retry_after(error.retry_after)
            return Problem(503, message, "server_error", code="server_busy", headers=headers)
        case DeadlineExceeded():
            # Trying the same again at once would be as slow and make others slower.
            headers = _retry_after(30) | {"x-should-retry": "false"}
            return Problem(503, message, "server_error", code="deadline_exceeded", headers=headers)
        case GenerationFailed():
            return Problem(422, message, "generation_error", code="generation_failed")
        case Unavailable():
            headers = _retry_after(60) | {"x-should-retry": "false"}
            return Problem(503, message, "server_error", code="unavailable", headers=headers)
        case RequestValidationError():
            return validation_problem(error.errors())
        case HTTPException():
            return _http_problem(error)
        case _:
            return INTERNAL


def validation_problem(errors: Sequence[Mapping[str, Any]], skip: int = 1) -> Problem:
    """Pydantic's first complaint; the first ``skip`` parts of its place ("body") are no field."""
    first = errors[0]
    kind = str(first["type"])
    if kind == "json_invalid":
        reason = first.get("ctx", {}).get("error", "")
        return Problem(400, f"the body is not valid JSON: {reason}", code="invalid_json")
    where = first["loc"][skip:]
    param = str(where[0]) if where else None  # further parts are alternatives of its type
    message = str(first["msg"]).removeprefix("Value error, ")
    code = "missing_required_parameter" if kind == "missing" else "invalid_value"
    return Problem(400, f"{param}: {message}" if param else message, param=param, code=code)


def _http_problem(error: HTTPException) -> Problem:
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    return Problem(
        error.status_code,
        str(error.detail),
        kinds.get(error.status_code, "invalid_request_error"),
        code=HTTP_CODES.get(error.status_code),
        headers=error.headers or {},
    )


def install(app: FastAPI) -> None:
    """Let every error of a route leave in OpenAI's shape (unforeseen ones: see ``records``)."""

    async def answer(request: Request, error: Exception) -> Response:
        found = problem(error)
        record = request.scope.get("state", {}).get("record")
        if record is not None:
            record.outcome = found.code or "error"
        return found.response()

    async def validation(request: Request, error: Exception) -> Response:
        kind = request.headers.get("content-type", "")
        if request.method == "POST" and "json" not in kind and "multipart" not in kind:
            text = "send a JSON object with the header Content-Type: application/json"
            return await answer(request, HTTPException(400, text))
        return await answer(request, error)

    app.add_exception_handler(TontaubeError, answer)
    app.add_exception_handler(HTTPException, answer)
    app.add_exception_handler(RequestValidationError, validation)
