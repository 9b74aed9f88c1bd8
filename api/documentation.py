"""What the OpenAPI document says beside the schemas: error answers and audio bodies."""

from __future__ import annotations

from typing import Any

from api.encoders import FORMATS

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
