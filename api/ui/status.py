"""``/v1/status``: the engine, its queue and its recent streams, as JSON for the page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from api.documentation import errors
from api.ports import ModuleStatus
from api.service import Service
from api.ui.answers import Choices, ServerStatus
from api.voices import describe


def router(service: Service) -> APIRouter:
    """Two routes: what can be asked for, and how it is going."""
    routes = APIRouter(prefix="/v1", tags=["health"])

    @routes.get(
        "/status",
        summary="How the server is doing",
        response_model=ServerStatus,
        responses=errors(401),
    )
    async def status(
        request: Annotated[
            str | None,
            Query(
                description="The `x-request-id` of a speech request whose place in line is wanted.",
                examples=["req_1"],
            ),
        ] = None,
    ) -> dict[str, Any]:
        """The engine, its queue, its modules and the streams that ended last."""
        return snapshot(service) | {"position": _position(service, request)}

    @routes.get(
        "/choices",
        summary="What can be asked for",
        response_model=Choices,
        responses=errors(401),
    )
    async def choices() -> dict[str, Any]:
        """Voices, languages and styles of the loaded model, its defaults, and the limits."""
        return catalogue(service)

    return routes


def catalogue(service: Service) -> dict[str, Any]:
    """Voices, languages and styles of the loaded model, its sampling defaults, and the limits."""
    description = service.engine.description
    sampling = description.sampling
    return {
        "model": description.id,
        "voices": [describe(voice) for voice in service.engine.voices.list()],
        "shipped": [voice.id for voice in description.voices],
        "default_voice": description.default_voice,
        "languages": description.languages,
        "styles": list(description.styles),
        "defaults": {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "acoustic_temperature": sampling.acoustic_temperature,
        },
        "sample_rate": service.sample_rate,
        "max_characters": service.max_characters,
    }


def snapshot(service: Service) -> dict[str, Any]:
    """The engine's state now, and figures of the streams that ended last (``ago`` in seconds)."""
    description, status = service.engine.description, service.engine.status()
    now = service.metrics.clock()
    return {
        "model": description.id,
        "revision": description.revision,
        "engine": status.engine,
        "device": status.device,
        "ready": status.ready,
        "failure": status.failure,
        "queue_length": status.queue_length,
        "active_streams": status.active_streams,
        "stream_limit": status.stream_limit,
        "cancellations": status.cancellations,
        "underruns": status.underruns,
        "emitted_seconds": round(status.emitted_seconds, 1),
        "modules": [_module(module) for module in status.modules],
        "recent": [
            asdict(finished) | {"ago": round(now - finished.at, 1)}
            for finished in service.metrics.recent
        ],
    }


def _module(module: ModuleStatus) -> dict[str, Any]:
    return {
        "name": module.name,
        "waiting": module.waiting,
        "running": module.running,
        "steps": module.steps,
        "step_seconds": module.step_seconds,
        "step_seconds_p99": module.step_seconds_p99,
        "batch": module.batch,
    }


def _position(service: Service, request: str | None) -> int | None:
    """Its place in line, from 1; 0 once it is being spoken; None for a request nobody knows."""
    meter = service.metrics.live.get(request) if request is not None else None
    return None if meter is None else meter.queue_position()
