"""``python app.py`` on the vLLM engine, as a process of its own, and what it says of itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tontaube.bench.length import resident_bytes

APP = Path(__file__).parents[2] / "app.py"
_STAGES = ("cb0", "cb1", "cb2", "cb3")
_PATIENCE = 3600.0  # seconds for a start, on a machine that is busy


@dataclass(frozen=True)
class App:
    """A server that is ready."""

    url: str
    pid: int
    log: Path

    def metric(self, name: str) -> dict[str, float]:
        """A metric's values, by the module they are of (or "")."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        return {
            sample.labels.get("module", ""): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name
        }

    def unfinished(self) -> dict[str, float]:
        """Requests in each stage's vLLM engine, by vLLM's own count."""
        running = self.metric("tontaube_module_running")
        return {stage: running[stage] for stage in _STAGES}

    def idle(self, patience: float = 60.0) -> bool:
        """Whether all engines are empty within so many seconds."""
        end = time.monotonic() + patience
        while any(self.unfinished().values()):
            if time.monotonic() > end:
                return False
            time.sleep(0.25)
        return True

    def memory(self) -> int:
        """Resident bytes."""
        return resident_bytes(self.pid)


@contextmanager
def running_app(folder: Path, **settings: str) -> Iterator[App]:
    """Start it with ``settings`` (by the names of Settings' fields); its log goes to ``folder``."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    chosen = {"engine": "vllm", "device": "cpu", "port": port, "data_dir": str(folder)} | settings
    variables = {f"TONTAUBE_{name.upper()}": value for name, value in chosen.items()}
    log = folder / "app.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(APP)],
            env={**os.environ, **variables},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    app = App(f"http://127.0.0.1:{port}", process.pid, log)
    try:
        end = time.monotonic() + _PATIENCE
        while not _is_ready(app.url):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"app.py is not ready:\n{log.read_text()}")
            time.sleep(1.0)
        yield app
    finally:
        process.terminate()
        process.wait()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ready", timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:  # not there yet, or not ready
        return False
