"""The real application on a loopback port, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from api.server import create_app
from tontaube.config import Settings
from tontaube.engine import Engine


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """Its address, once it is ready."""
    ready = threading.Event()
    box: dict[str, object] = {}

    async def main() -> None:
        engine = await Engine.load(settings)
        app = create_app(engine, settings)
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await engine.warm_up()
        box.update(url=f"http://127.0.0.1:{listener.getsockname()[1]}", server=server)
        ready.set()
        try:
            await serving
        finally:
            await engine.close()

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            box["error"] = error
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        if "error" in box:
            raise RuntimeError("the server did not start") from box["error"]  # type: ignore[misc]
        yield str(box["url"])
    finally:
        server = box.get("server")
        if isinstance(server, uvicorn.Server):
            server.should_exit = True
        thread.join()
