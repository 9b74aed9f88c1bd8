"""Settings → Engine → application → server. Nothing else happens here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence

from pydantic import ValidationError

from api.server import create_app, limits_of
from api.serving import server_of
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.errors import TontaubeError

log = logging.getLogger("tontaube")


async def serve(settings: Settings) -> None:
    """Serve until the process is asked to stop."""
    engine = await Engine.load(settings)
    limits = limits_of(settings)
    server = server_of(
        create_app(engine, settings, limits),
        limits,
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
    )
    # uvicorn raises a signal again after it has stopped: SIGTERM would end us before the engine.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        async with asyncio.TaskGroup() as group:
            warming = group.create_task(engine.warm_up())
            await server.serve()
            warming.cancel()
    finally:
        await engine.close()
        log.info("stopped")


def help_text() -> str:
    """Every setting, its default and what it means."""
    lines = ["All options are environment variables:", ""]
    for name, field in Settings.model_fields.items():
        text = f"  TONTAUBE_{name.upper()}={field.default}"
        lines.append(f"{text}  # {field.description}" if field.description else text)
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command ``python app.py``; it takes no arguments, but knows ``--help``."""
    ArgumentParser(
        description="Tontaube: speak over HTTP.",
        epilog=help_text(),
        formatter_class=RawDescriptionHelpFormatter,
    ).parse_args(arguments)
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
