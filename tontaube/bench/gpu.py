"""``python -m tontaube.bench gpu``: the released model's sizes with random weights, through the
engine: first audio, real-time factor alone and of eight streams, beside the report's figures.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tontaube.assembly import choose_device
from tontaube.bench.hearing import Heard, listen
from tontaube.bench.random_model import RELEASED, SMALL, Shape, write_random_bundle
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.errors import Unavailable

TEXT = (
    "The train was late again, and nobody on the platform seemed to mind: they had their papers, "
    "their tea and the low sun on the rails, and the station master, who had long stopped saying "
    "when it would come, went from bench to bench and asked how everybody had slept."
)
TARGETS = (0.2, 0.08, 0.02)  # on an RTX 5090 (contract, section 9)
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Options:
    """``engine``, ``device``: as in Settings; ``folder`` keeps the random model."""

    small: bool = False
    engine: str = "vllm"
    device: str = "auto"
    folder: Path | None = None
    repeats: int = 5
    streams: int = 8


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds, and seconds of work per second of audio."""

    load: float
    first_audio: float  # median
    alone: float  # median
    together: float
    seconds: float  # of audio that one request gives

    def table(self, streams: int) -> str:
        """Beside the targets."""
        names = ("first audio, s", "real-time factor", f"the same, {streams} streams")
        values = (self.first_audio, self.alone, self.together)
        rows = [f"{'':<24}{'here':>8}{'report':>8}"]
        for name, value, target in zip(names, values, TARGETS, strict=True):
            verdict = "reached" if value <= target else f"{value / target:.1f} times"
            rows.append(f"{name:<24}{value:>8.3f}{target:>8.2f}  {verdict}")
        return "\n".join(rows)


class Bench:
    """Requests to an engine, timed. Every one has another seed: none is remembered."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seeds = itertools.count(1)

    async def speak(self) -> Heard:
        """One request."""
        return await listen(self._engine, TEXT, next(self._seeds))

    async def measure(self, options: Options, load: float) -> Figures:
        """Alone, several times; then all at once. What comes first pays for compilation."""
        await self.speak()
        single = [await self.speak() for _ in range(options.repeats)]
        start = time.perf_counter()
        many = await asyncio.gather(*(self.speak() for _ in range(options.streams)))
        spent = time.perf_counter() - start
        return Figures(
            load=load,
            first_audio=float(np.median([one.first for one in single])),
            alone=float(np.median([one.spent / one.audio for one in single])),
            together=spent / sum(one.audio for one in many),
            seconds=single[-1].audio,
        )


async def _run(settings: Settings, options: Options) -> Figures:
    start = time.perf_counter()
    engine = await Engine.load(settings)
    try:
        await engine.warm_up()
        load = time.perf_counter() - start
        status = engine.status()
        print(f"{status.engine} on {status.device}; loaded and warm after {load:.0f} s")
        return await Bench(engine).measure(options, load)
    finally:
        await engine.close()


def run(options: Options) -> Figures:
    """Write the model, load it, measure, print. Raises Unavailable without a GPU, unless small."""
    device = choose_device(options.device)
    if device.type != "cuda" and not options.small:
        raise Unavailable("this needs a CUDA GPU; --small runs a scaled-down model anywhere")
    shape: Shape = SMALL if options.small else RELEASED
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "model"
        if not (folder / "bundle.json").is_file():
            write_random_bundle(shape, folder)
        settings = Settings.model_validate(
            {
                "model": str(folder),
                "engine": options.engine,
                "device": str(device),
                "data_dir": Path(temporary),
                "trim_silence": False,
                "adjust_streams": False,
            }
        )
        figures = asyncio.run(_run(settings, options))
    print(
        f"random weights, {figures.seconds:.1f} s of audio a request, in float32 after the stages"
    )
    print(figures.table(options.streams))
    if device.type == "cuda":
        print(
            f"{torch.cuda.max_memory_reserved(device) / _GIB:.1f} GiB of the GPU's memory at most"
        )
    if options.small:
        print("scaled down: these figures say nothing about the released model")
    return figures
