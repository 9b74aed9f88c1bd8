"""An engine → the application that serves it: routes, errors and middleware, put together."""

from __future__ import annotations

import time
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

import tontaube
from api import batch, errors, health, speech, voices, websocket
from api.documentation import ANY_ERROR, DESCRIPTION, TAGS, restore_nulls
from api.engine_metrics import EngineCollector
from api.limits import Gate, Limits
from api.metrics import Metrics
from api.models import Models
from api.ports import SpeechEngine
from api.records import Records
from api.service import Service
from tontaube.config import Settings

_EXPOSED = ["x-request-id", "x-sample-rate", "x-audio-duration", "x-rtf", "retry-after"]


class Application(FastAPI):
    """FastAPI, with a document whose examples are whole."""

    def openapi(self) -> dict[str, Any]:
        return restore_nulls(super().openapi())


def create_app(engine: SpeechEngine, settings: Settings, limits: Limits | None = None) -> FastAPI:
    """The HTTP and WebSocket application; the engine's life is its owner's business."""
    limits = limits or limits_of(settings)
    metrics = Metrics()
    metrics.registry.register(EngineCollector(engine))
    service = Service(
        engine=engine,
        metrics=metrics,
        models=Models(engine.description.id, created=int(time.time())),
        limits=limits,
        max_characters=settings.max_characters,
        log_text=settings.log_text,
    )
    app = Application(
        title="Tontaube",
        version=getattr(tontaube, "__version__", "0"),
        summary="Streaming text-to-speech with OpenAI's speech API",
        description=DESCRIPTION,
        openapi_tags=TAGS,
        responses={"default": ANY_ERROR},
    )
    errors.install(app)
    for router in (
        speech.router(service),
        batch.router(service),
        websocket.router(service),
        voices.router(service),
        service.models.router(),
        health.router(service),
    ):
        app.include_router(router)
    if settings.ui:
        from api.ui import page  # heavy, and not everybody wants it

        page.mount(app, service)
    # The last one added is the outermost.
    app.add_middleware(Gate, limits=limits)
    app.add_middleware(Records)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=limits.origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=_EXPOSED,
    )
    return app


def limits_of(settings: Settings) -> Limits:
    """The limits that an operator can set."""
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    return Limits(
        api_keys=(key,) if key else (),
        origins=settings.cors,
        requests_per_minute=settings.requests_per_minute,
        reference_bytes=settings.max_reference_bytes,
    )
