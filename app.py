"""Settings → Engine → application → server. Nothing else happens here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys

import uvicorn
from pydantic import ValidationError

from api.server import create_app
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.errors import TontaubeError


async def serve(settings: Settings) -> None:
    """Serve until the process is asked to stop."""
    engine = await Engine.load(settings)
    config = uvicorn.Config(
        create_app(engine, settings),
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        timeout_graceful_shutdown=5,
    )
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(uvicorn.Server(config).serve())
            group.create_task(engine.warm_up())
    finally:
        await engine.close()


def main() -> None:
    """The command ``python app.py``."""
    try:
        settings = Settings()
        logging.basicConfig(
            level=settings.log_level.upper(),
            format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        )
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(settings))
    except* (TontaubeError, ValidationError) as group:
        sys.exit("\n".join(f"error: {error}" for error in group.exceptions))


if __name__ == "__main__":
    main()
