"""Is it alive, may it be used, how is it doing: for people, load balancers and Prometheus."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.documentation import errors
from api.service import Service


def router(service: Service) -> APIRouter:
    """``/health``, ``/ready``, ``/v1/test`` and ``/metrics``."""
    routes = APIRouter(tags=["health"])

    @routes.get("/health", summary="The process is alive")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @routes.get("/v1/test", summary="The API can be reached (and the key is right)")
    async def test() -> dict[str, str]:
        return {"status": "ok"}

    @routes.get("/ready", summary="A warm-up synthesis has succeeded", responses=errors(503))
    async def ready() -> dict[str, str]:
        service.require_ready()
        return {"status": "ready", "model": service.engine.description.id}

    @routes.get("/metrics", summary="Prometheus metrics", response_class=Response)
    async def metrics() -> Response:
        return Response(service.metrics.render(), media_type=CONTENT_TYPE_LATEST)

    return routes
