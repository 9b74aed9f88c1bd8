"""``/v1/audio/voices/check``: a recording → what would be used of it, drawn, measured, judged."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile

from api.disconnects import until_disconnected
from api.documentation import CHECK_BODY, errors_of_body
from api.service import Service
from api.ui.answers import Recording
from tontaube.errors import InvalidRequest
from tontaube.types import Samples

_PEAKS = 400
_SHORT_SECONDS = 6.0
_LONGEST_SECONDS = 60.0
_LOUD = 0.99  # of full scale
_CLIPPED_SHARE = 1e-3
_NOISY_DB = 18.0  # between the loud parts and the pauses
_PAUSE_DB = 30.0  # below the loud parts
_FLOOR = 1e-9


def router(service: Service) -> APIRouter:
    """The one route; it keeps nothing."""
    routes = APIRouter(prefix="/v1/audio/voices", tags=["voices"])

    @routes.post(
        "/check",
        summary="See what would be used of a recording",
        openapi_extra={"requestBody": CHECK_BODY},
        response_model=Recording,
        responses=errors_of_body(),
    )
    async def check(request: Request) -> dict[str, Any]:
        """Its length, loudness and outline, and what might make a poor voice of it; nothing is
        kept."""
        async with request.form(max_files=1, max_fields=4) as form:
            recording = form.get("audio_sample")
            if not isinstance(recording, UploadFile):
                raise InvalidRequest("attach the recording as a file", "audio_sample")
            audio = await recording.read()
        reading = service.engine.voices.read(audio)
        samples: Samples = await until_disconnected(request.receive, reading)
        return inspect(samples, service.sample_rate)

    return routes


def inspect(samples: Samples, sample_rate: int) -> dict[str, Any]:
    """What is worth knowing of a reference [samples]: ``seconds``, ``level`` (dB of full scale),
    ``peaks`` (0..1) for drawing it, and ``warnings``, by name."""
    levels = _levels(samples, sample_rate // 50)
    loud, quiet = np.percentile(levels, 95), np.percentile(levels, 5)
    seconds = len(samples) / sample_rate
    warnings = {
        "short": seconds < _SHORT_SECONDS,
        "cut": seconds >= _LONGEST_SECONDS,
        "clipped": float(np.mean(np.abs(samples) > _LOUD)) > _CLIPPED_SHARE,
        "noisy": loud - quiet < _NOISY_DB,
        "pauses": float(np.mean(levels < loud - _PAUSE_DB)) > 0.5,
    }
    parts = np.array_split(np.abs(samples), min(_PEAKS, len(samples)))
    return {
        "seconds": round(seconds, 2),
        "level": round(float(loud), 1),
        "peaks": [round(float(part.max()), 3) for part in parts],
        "warnings": [name for name, found in warnings.items() if found],
    }


def _levels(samples: Samples, length: int) -> Samples:
    """[samples] → the level of each piece of ``length`` samples in dB, [n]."""
    frames = samples[: max(1, len(samples) // length) * length].reshape(-1, length)
    levels: Samples = 10 * np.log10(np.square(frames).mean(axis=1) + _FLOOR)
    return levels
