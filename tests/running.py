"""The API over the real engine on a loopback port, both in the event loop of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from api.limits import Limits
from api.server import create_app
from tests.api_fakes import serving_app
from tontaube.config import Settings
from tontaube.engine import Engine


@asynccontextmanager
async def running(
    bundle: Path, data: Path, limits: Limits | None = None, **changes: object
) -> AsyncIterator[tuple[Engine, str]]:
    """The engine, not warmed up yet, and its address."""
    settings = Settings.model_validate(
        {
            "model": str(bundle),
            "dtype": "float32",
            "device": "cpu",
            "data_dir": data,
            "adjust_streams": False,
            "ui": False,
        }
        | changes
    )
    engine = await Engine.load(settings)
    try:
        async with serving_app(create_app(engine, settings, limits), limits) as url:
            yield engine, url
    finally:
        await engine.close()
