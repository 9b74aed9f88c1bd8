"""What the OpenAPI document says beside the schemas: error answers and audio bodies."""

from __future__ import annotations

from typing import Any

from api.encoders import FORMATS

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

Every error, of whatever kind, is `{"error": {"message", "type", "param", "code"}}`.
"""

_ERROR_EXAMPLE = {
    "error": {
        "message": "speed: Input should be less than or equal to 4",
        "type": "invalid_request_error",
        "param": "speed",
        "code": "invalid_value",
    }
}

_ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}

_MEANINGS = {
    400: "A value is missing or wrong; `param` names it",
    401: "No valid API key",
    404: "There is no such model, voice or path",
    408: "The body took too long to arrive",
    413: "The body is too large",
    422: "The model cannot do this; trying again would not help",
    429: "Too many requests; see `Retry-After`",
    503: "No room at the moment, or the model is being loaded; see `Retry-After`",
}


ANY_ERROR: dict[str, Any] = {
    "description": "Any error",
    "content": {"application/json": {"schema": _ERROR_SCHEMA, "example": _ERROR_EXAMPLE}},
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route that may fail with ``statuses``."""
    return {status: ANY_ERROR | {"description": _MEANINGS[status]} for status in statuses}


def _binary() -> dict[str, Any]:
    return {"schema": {"type": "string", "format": "binary"}}


SPEECH_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The audio, streamed while it is being spoken (or events, for `sse`).",
        "content": {
            **{audio_format.media_type: _binary() for audio_format in FORMATS.values()},
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'data: {"type": "speech.audio.delta", "audio": "…", '
                '"segment": {"index": 0, "start": 0, "end": 12}, "start": 0.0, "end": 1.2}\n\n'
                'data: {"type": "speech.audio.done", "usage": '
                '{"input_tokens": 12, "output_tokens": 60, "total_tokens": 72}}\n\n',
            },
        },
    },
    **errors(400, 401, 404, 408, 413, 422, 429, 503),
}

UPLOAD_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["name", "audio_sample", "consent"],
                "properties": {
                    "name": {"type": "string", "maxLength": 64, "example": "Anna"},
                    "audio_sample": {
                        "type": "string",
                        "format": "binary",
                        "description": "1 to 60 seconds of one speaker, in any common file format",
                    },
                    "language": {
                        "type": "string",
                        "description": "Omitted: the default voice's",
                        "example": "english",
                    },
                    "style": {
                        "type": "string",
                        "description": "Omitted: the default voice's",
                        "example": "conversational",
                    },
                    "consent": {
                        "type": "string",
                        "maxLength": 2000,
                        "description": "How the speaker agreed; kept with the voice",
                        "example": "I am the speaker and agree to the use of my voice.",
                    },
                },
            }
        }
    },
}

BATCH_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "For every item, in order, a file or an error.",
        "content": {
            "application/json": {
                "example": {
                    "object": "list",
                    "data": [
                        {
                            "index": 0,
                            "audio": "UklGR…",
                            "response_format": "wav",
                            "voice": "anna",
                            "duration": 1.28,
                            "sample_rate": 24000,
                            "usage": {
                                "input_tokens": 12,
                                "output_tokens": 64,
                                "total_tokens": 76,
                            },
                        },
                        {"index": 1, **_ERROR_EXAMPLE},
                    ],
                }
            }
        },
    },
    **errors(400, 401, 408, 413, 429, 503),
}
