"""``python -m tontaube.bench startup``: from a cold process to the first audio, part by part."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

APP = Path(__file__).parents[2] / "app.py"

TEXT = "The first words take the longest."


def measure(model: str | None) -> None:
    """Print seconds for import, load and the first request; run it in a fresh process."""
    begin = time.perf_counter()
    from tontaube.config import Settings
    from tontaube.engine import Engine
    from tontaube.types import SpeechRequest

    settings = Settings(model=model) if model else Settings()
    imported = time.perf_counter()

    async def speak() -> list[float]:
        engine = await Engine.load(settings)
        moments = [time.perf_counter()]
        for seed in range(2):  # another one each time: a repeated phrase would be remembered
            start = time.perf_counter()
            first = 0.0
            async with engine.stream(SpeechRequest(text=TEXT, seed=seed)) as stream:
                async for _ in stream:
                    first = first or time.perf_counter() - start
            moments.append(first)
        await engine.close()
        return moments

    loaded, first, second = asyncio.run(speak())
    print(f"import          {imported - begin:6.2f} s")
    print(f"load            {loaded - imported:6.2f} s")
    print(f"first request   {first:6.2f} s to its first audio")
    print(f"second request  {second:6.2f} s to its first audio")


@contextmanager
def served(model: str | None, **settings: str) -> Iterator[tuple[str, int]]:
    """``app.py`` on a free port, ready, as its address and process; ``settings`` are environment
    variables."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings |= {"TONTAUBE_PORT": str(port), "TONTAUBE_LOG_LEVEL": "warning"}
    settings |= {"TONTAUBE_MODEL": model} if model else {}
    server = subprocess.Popen([sys.executable, str(APP)], env={**os.environ, **settings})
    address = f"http://127.0.0.1:{port}"
    try:
        while not _answers(f"{address}/ready"):
            if server.poll() is not None:
                raise RuntimeError("app.py ended before it was ready")
            time.sleep(0.02)
        yield address, server.pid
    finally:
        server.terminate()
        server.wait()


def serve(model: str | None) -> None:
    """Print seconds until ``app.py`` is ready and until the first bytes."""
    begin = time.perf_counter()
    with served(model) as (address, _):
        print(f"app.py ready    {time.perf_counter() - begin:6.2f} s after its start")
        body = {"model": "tontaube-v1", "input": TEXT, "response_format": "pcm"}
        request = urllib.request.Request(
            f"{address}/v1/audio/speech",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        for name in ("first request", "second request"):
            start = time.perf_counter()
            with urllib.request.urlopen(request) as answer:
                answer.read(1)
                print(f"{name:<15} {time.perf_counter() - start:6.2f} s to its first bytes, HTTP")
                answer.read()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def run(model: str | None) -> None:
    """Measure the library, then the server, each in a fresh process."""
    subprocess.run([sys.executable, "-m", __name__, *([model] if model else [])], check=True)
    serve(model)


if __name__ == "__main__":
    measure(sys.argv[1] if len(sys.argv) > 1 else None)
