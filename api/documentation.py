"""What the OpenAPI document says beside the schemas: error answers and audio bodies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import Path
from starlette.exceptions import HTTPException

from api.answers import Error
from api.encoders import FORMATS
from api.errors import INTERNAL, Problem, VoiceNotFound, problem, validation_problem
from tontaube.errors import Busy, GenerationFailed

DESCRIPTION = """
Point an OpenAI client's `base_url` at `/v1` of this server. Audio is 24 kHz mono.

## Text in as it is written: `WS /v1/audio/speech/stream`

Text frames are JSON. A socket carries several *contexts*, each with a voice of its own;
`context` may be left out (`"default"`).

| you say | meaning |
|---|---|
| `{"type": "start", "context": "a", "voice": "alloy", "flush_after": 2.0}` | open a context; \
takes what the body of `/v1/audio/speech` takes, but for `input` |
| `{"type": "append", "context": "a", "text": "Good mor"}` | more text, cut anywhere; the first \
clause is spoken as soon as it is there, then sentences |
| `{"type": "flush", "context": "a"}` | speak all of it now; so does a \
pause of `flush_after` seconds |
| `{"type": "end", "context": "a"}` | the text is complete |
| `{"type": "cancel", "context": "a", "played_samples": 12000}` | stop at once; `played_samples` \
is what the listener has heard, if you know |

| we say | meaning |
|---|---|
| `{"type": "started", "context": "a", "voice": …, "language": …, "style": …, "sample_rate": …}` | |
| `{"type": "audio", "context": "a", "segment": {"index": 0, "start": 0, "end": 20}, \
"text_end": 12, "start": 0.0, "end": 0.8, "samples": 19200}` | the next frame is binary: these \
samples, signed 16-bit little-endian. `segment` and `text_end` count characters of the appended \
text, `start` and `end` are seconds of audio |
| `{"type": "done", "context": "a", "usage": {…}, "spoken": {"characters": …, "samples": …}}` | \
everything was spoken |
| `{"type": "cancelled", "context": "a", "spoken": {"characters": …, "samples": …}}` | how far \
it came |
| `{"type": "error", "context": "a", "error": {"message", "type", "param", "code"}}` | the context \
failed, or a message was wrong (then nothing else changed) |

## Errors

Every error, of whatever kind, is `{"error": {"message", "type", "param", "code"}}`. Codes:

| status | `code` |
|---|---|
| 400 | `invalid_value` (`param` names it), `missing_required_parameter`, `voice_not_found`, \
`invalid_json`, `invalid_request` |
| 401, 403 | `invalid_api_key`; `origin_not_allowed`: a socket opened by a foreign page |
| 404, 405 | `model_not_found`, `voice_not_found`, `not_found`; `method_not_allowed` |
| 408, 413, 415, 431 | `request_timeout`, `request_too_large`, `unsupported_encoding` |
| 422 | `generation_failed`: trying again would not help |
| 429, 503 | `rate_limit_exceeded`; `server_busy`, `deadline_exceeded`, `unavailable` |
| 500 | `internal_error` |
"""

_PROBLEMS: Mapping[int, tuple[str, Problem]] = MappingProxyType(
    {
        found.status: (meaning, found)
        for meaning, found in (
            (
                "A value is missing or wrong; `param` names it.",
                validation_problem(
                    [
                        {
                            "type": "less_than_equal",
                            "loc": ("body", "speed"),
                            "msg": "Input should be less than or equal to 4",
                        }
                    ]
                ),
            ),
            (
                "No valid API key (where the server asks for one).",
                problem(HTTPException(401, "give a valid API key: Authorization: Bearer <key>")),
            ),
            (
                "There is no such model or voice.",
                problem(VoiceNotFound("there is no voice with the id 'berta'")),
            ),
            (
                "The body took too long to arrive.",
                problem(HTTPException(408, "the body took too long to arrive")),
            ),
            (
                "The body is too large.",
                problem(HTTPException(413, "the body is larger than 2097152 bytes")),
            ),
            (
                "The body is compressed.",
                problem(HTTPException(415, "compressed bodies are not accepted")),
            ),
            (
                "The model cannot do this; trying again would not help.",
                problem(GenerationFailed("the model gave no audio for this text")),
            ),
            (
                "Too many requests; see `Retry-After`.",
                problem(HTTPException(429, "too many requests; try again later")),
            ),
            (
                "No room at the moment, or the model is being loaded; see `Retry-After`.",
                problem(Busy("all places are taken, try again later")),
            ),
        )
    }
)

_OF_EVERY_BODY = (400, 401, 408, 413, 415, 429)


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route that may fail with ``statuses``."""
    return {status: _error(*_PROBLEMS[status]) for status in statuses}


def errors_of_body(*more: int) -> dict[int | str, dict[str, Any]]:
    """… of a route that takes a body."""
    return errors(*sorted({*_OF_EVERY_BODY, *more}))


def _error(meaning: str, example: Problem) -> dict[str, Any]:
    content = {"application/json": {"example": {"error": example.body()}}}
    headers = {}
    if example.status in (429, 503):
        text = "Seconds after which it is worth trying again."
        headers["Retry-After"] = {"description": text, "schema": {"type": "integer"}}
    return {"model": Error, "description": meaning, "content": content, "headers": headers}


ANY_ERROR = _error("Any other error.", INTERNAL)


def restore_nulls(document: dict[str, Any]) -> dict[str, Any]:
    """FastAPI drops every null of a document, those of the error examples as well."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for response in operation["responses"].values():
                for entry in response.get("content", {}).values():
                    if isinstance(entry.get("example"), dict):  # of errors alone
                        error = entry["example"]["error"]
                        error |= {"param": error.get("param"), "code": error.get("code")}
    return document


TAGS = [
    {"name": "speech", "description": "Text in, audio out."},
    {"name": "voices", "description": "Who can speak; recordings that become voices."},
    {"name": "models", "description": "The names this server answers to."},
    {"name": "health", "description": "Is it alive, may it be used, how is it doing."},
]

VoiceId = Annotated[
    str,
    Path(
        description="An id of `/v1/audio/voices`; names and aliases do not count.",
        examples=["anna"],
    ),
]


def _binary() -> dict[str, Any]:
    return {"schema": {"type": "string", "format": "binary", "description": "An audio file."}}


SPEECH_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The audio, streamed while it is being spoken (or events, for `sse`).",
        "headers": {
            name: {"description": text, "schema": {"type": kind}}
            for name, kind, text in (
                ("x-request-id", "string", "The request's own, if it has one that is safe."),
                ("x-sample-rate", "integer", "In hertz."),
                ("x-audio-duration", "number", "Seconds of audio; of whole files only."),
                ("x-rtf", "number", "Seconds of work per second; of whole files only."),
            )
        },
        "content": {
            **{audio_format.media_type: _binary() for audio_format in FORMATS.values()},
            "text/event-stream": {
                "schema": {"type": "string", "description": "Server-sent events."},
                "example": 'data: {"type": "speech.audio.delta", "audio": "…", '
                '"segment": {"index": 0, "start": 0, "end": 12}, "start": 0.0, "end": 1.2}\n\n'
                'data: {"type": "speech.audio.done", "usage": '
                '{"input_tokens": 12, "output_tokens": 60, "total_tokens": 72}}\n\n',
            },
        },
    },
    **errors_of_body(404, 422, 503),
}

METRICS_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The text exposition format.",
        "content": {
            "text/plain": {
                "schema": {"type": "string", "description": "One metric a line."},
                "example": "tontaube_ready 1.0\ntontaube_queue_depth 0.0\n",
            }
        },
    },
    **errors(401),
}

PREVIEW_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The recording.", "content": {"audio/wav": _binary()}},
    **errors(401, 404),
}

UPLOAD_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["name", "audio_sample", "consent"],
                "properties": {
                    "name": {
                        "type": "string",
                        "maxLength": 64,
                        "description": "For people; the id is made of it",
                        "examples": ["Anna"],
                    },
                    "audio_sample": {
                        "type": "string",
                        "format": "binary",
                        "description": "1 to 60 seconds of one speaker, in any common file format",
                    },
                    "language": {
                        "type": "string",
                        "description": "Omitted: the default voice's",
                        "examples": ["english"],
                    },
                    "style": {
                        "type": "string",
                        "description": "Omitted: the default voice's",
                        "examples": ["conversational"],
                    },
                    "consent": {
                        "type": "string",
                        "maxLength": 2000,
                        "description": "How the speaker agreed; kept with the voice",
                        "examples": ["I am the speaker and agree to the use of my voice."],
                    },
                },
            }
        }
    },
}

CHECK_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["audio_sample"],
                "properties": {
                    "audio_sample": {
                        "type": "string",
                        "format": "binary",
                        "description": "1 to 60 seconds of one speaker, in any common file format",
                    },
                },
            }
        }
    },
}
