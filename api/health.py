"""Is it alive, may it be used, how is it doing: for people, load balancers and Prometheus."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.answers import Fine, Ready
from api.documentation import METRICS_RESPONSES, errors
from api.service import Service


def router(service: Service) -> APIRouter:
    """``/health``, ``/ready``, ``/v1/test`` and ``/metrics``."""
    routes = APIRouter(tags=["health"])

    @routes.get("/health", summary="The process is alive")
    async def health() -> Fine:
        """True from the first moment, also while the model is being loaded; needs no key."""
        return Fine(status="ok")

    @routes.get("/v1/test", summary="The API can be reached", responses=errors(401))
    async def test() -> Fine:
        """… and the key is right, where the server asks for one."""
        return Fine(status="ok")

    @routes.get("/ready", summary="A warm-up synthesis has succeeded", responses=errors(503))
    async def ready() -> Ready:
        """503 until the model has been loaded and has spoken a sentence; needs no key."""
        service.require_ready()
        return Ready(status="ready", model=service.engine.description.id)

    @routes.get(
        "/metrics",
        summary="Prometheus metrics",
        response_class=Response,
        responses=METRICS_RESPONSES,
    )
    async def metrics() -> Response:
        """Times to first audio, real-time factors, underruns, queue, steps and caches."""
        return Response(service.metrics.render(), media_type=CONTENT_TYPE_LATEST)

    return routes
