"""``python -m tontaube.bench beside``: our server and Kokoro-82M (int8, ONNX Runtime), text by text
in turns on one machine.

Kokoro gives a sentence when all of it is made, so its first audio comes with its last.
"""

from __future__ import annotations

import json
import multiprocessing
import multiprocessing.connection
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import httpx
import numpy as np

from tontaube.bench.listening import onset
from tontaube.bench.startup import served
from tontaube.bench.voice import RATE, TEXTS

THRESHOLD = 328  # of int16: -40 dBFS is audible
VOICE = "af_heart"
# nothing is remembered from one text to the next, and nothing waits for the listener
ALL_ANEW = {"TONTAUBE_PHRASE_CACHE_BYTES": "0", "TONTAUBE_AHEAD_SECONDS": "1e6"}


@dataclass(slots=True)
class Row:
    """One system, a value for each text."""

    name: str
    memory: int = 0  # bytes, the most that were resident
    factors: list[float] = field(default_factory=list)  # seconds for a second of audio
    heard: list[float] = field(default_factory=list)  # seconds until something is audible

    def line(self) -> str:
        """As printed: median and worst."""
        return (
            f"{self.name:<14} {np.median(self.factors):>7.3f} ({max(self.factors):.3f}) "
            f"{np.median(self.heard):>8.2f} ({max(self.heard):.2f}) {self.memory / 2**20:>9.0f}"
        )


class System(Protocol):
    """Something that speaks a text: seconds until it is audible, until its end, and of audio."""

    def speak(self, text: str) -> tuple[float, float, float]: ...

    @property
    def process(self) -> int: ...


class Server:
    """Our server, asked as a client asks it."""

    def __init__(self, process: int, address: str) -> None:
        self.process = process
        self._client = httpx.Client(base_url=address, timeout=600)

    def speak(self, text: str) -> tuple[float, float, float]:
        begin, first, pieces = time.perf_counter(), 0.0, []
        body = {"model": "tontaube-v1", "input": text, "response_format": "pcm"}
        with self._client.stream("POST", "/v1/audio/speech", json=body) as answer:
            answer.raise_for_status()
            for piece in answer.iter_bytes():
                first = first or time.perf_counter() - begin
                pieces.append(piece)
        spent = time.perf_counter() - begin
        samples = np.frombuffer(b"".join(pieces), "<i2")
        return first + _silence(samples), spent, len(samples) / RATE


class Kokoro:
    """Kokoro in a process of its own, so that its memory can be told from ours."""

    def __init__(self, process: int, pipe: multiprocessing.connection.Connection) -> None:
        self.process = process
        self._pipe = pipe

    def speak(self, text: str) -> tuple[float, float, float]:
        self._pipe.send(text)
        found: tuple[float, float, float] = self._pipe.recv()
        return found


def _silence(samples: np.ndarray) -> float:
    return (onset(samples, THRESHOLD) or 0) / RATE


def _serve_kokoro(folder: Path, pipe: multiprocessing.connection.Connection) -> None:
    """Answer texts until there is none."""
    import onnxruntime as ort

    from tontaube.train.kokoro import phonemes

    session = ort.InferenceSession(
        str(folder / "kokoro-v1.0.int8.onnx"), providers=["CPUExecutionProvider"]
    )
    known = json.loads((folder / "vocab.json").read_text("utf-8"))["vocab"]
    voice = np.fromfile(folder / f"voices/{VOICE}.bin", np.float32).reshape(-1, 1, 256)
    while text := pipe.recv():
        begin = time.perf_counter()
        ids = [known[c] for c in phonemes(text, "english") if c in known]
        feed = {
            "tokens": np.array([[0, *ids, 0]], np.int64),
            "style": voice[len(ids)],
            "speed": np.ones(1, np.float32),
        }
        wave = session.run(None, feed)[0].ravel()
        spent = time.perf_counter() - begin
        samples = (np.clip(wave, -1, 1) * 32767).astype(np.int16)
        pipe.send((spent + _silence(samples), spent, len(samples) / RATE))


@contextmanager
def kokoro(folder: Path) -> Iterator[Kokoro]:
    """Kokoro, ready."""
    spawning = multiprocessing.get_context("spawn")
    ours, its = spawning.Pipe()
    process = spawning.Process(target=_serve_kokoro, args=(folder, its), daemon=True)
    process.start()
    its.close()
    try:
        yield Kokoro(process.pid or 0, ours)
    finally:
        ours.close()
        process.terminate()
        process.join()


def _peak(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text("ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def run(folder: Path, model: str | None, limit: int) -> None:
    """Measure and print."""
    texts = (TEXTS / "english.txt").read_text("utf-8").splitlines()[: limit + 1]
    with served(model, **ALL_ANEW) as (address, process), kokoro(folder) as other:
        systems: dict[str, System] = {"tontaube": Server(process, address), "Kokoro int8": other}
        rows = {name: Row(name) for name in systems}
        for number, text in enumerate(texts):
            for name, system in systems.items():
                heard, spent, audio = system.speak(text)
                if number:  # the first text warms up
                    rows[name].heard.append(heard)
                    rows[name].factors.append(spent / audio)
        for name, system in systems.items():
            rows[name].memory = _peak(system.process)
    print(f"{'':<14} {'RTF (worst)':>15} {'audible s (worst)':>15} {'peak MiB':>9}")
    for row in rows.values():
        print(row.line())
