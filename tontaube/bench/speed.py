"""``python -m tontaube.bench speed``: what one device gives to 1, 2, 4 … listeners at once.

Numbers of listeners take turns in every round, so that a machine's moods meet all of them alike;
CPU time is printed beside wall time, as other programs may be using the machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tontaube.bench.hearing import listen
from tontaube.bench.voice import TEXTS
from tontaube.config import Settings
from tontaube.engine import Engine


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure."""

    listeners: tuple[int, ...] = (1, 2, 4, 8)
    rounds: int = 3
    sentences: int = 3  # of each text


@dataclass(slots=True)
class Row:
    """One number of listeners, a value for each round."""

    listeners: int
    wall: list[float] = field(default_factory=list)  # seconds for a second of audio, all listeners
    cpu: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)  # seconds to first audio, of each listener

    def line(self, alone: Row) -> str:
        """As printed, with the throughput as a multiple of one listener's in the same round."""
        gains = np.divide(alone.cpu, self.cpu)
        return (
            f"{self.listeners:>9} {np.median(self.wall):>9.3f} {np.median(self.cpu):>8.3f} "
            f"{np.median(np.divide(alone.wall, self.wall)):>11.2f} {np.median(gains):>10.2f} "
            f"({gains.min():.2f}..{gains.max():.2f}) {np.median(self.first):>9.2f}"
        )


HEADER = f"{'listeners':>9} {'RTF wall':>9} {'RTF CPU':>8} {'gain wall':>11} {'gain CPU':>10} \
{'(spread)':>12} {'TTFA s':>9}"


async def measure(engine: Engine, row: Row, texts: Sequence[str], seed: int) -> None:
    """As many listeners at once as the row has; they come together and hear different texts."""
    wall, cpu = time.perf_counter(), time.process_time()
    heard = await asyncio.gather(
        *(listen(engine, texts[n % len(texts)], seed + n) for n in range(row.listeners))
    )
    audio = sum(one.audio for one in heard)
    row.wall.append((time.perf_counter() - wall) / audio)
    row.cpu.append((time.process_time() - cpu) / audio)
    row.first += [one.first for one in heard]


async def compare(settings: Settings, options: Options) -> list[Row]:
    """All numbers of listeners in turn, in every round."""
    lines = (TEXTS / "english.txt").read_text("utf-8").splitlines()
    count, listeners = options.sentences, options.listeners
    texts = [" ".join(lines[n : n + count]) for n in range(0, len(lines) - count, count)]
    rows = [Row(number) for number in listeners]
    engine = await Engine.load(settings)
    try:
        await engine.warm_up()
        for round_ in range(options.rounds):
            for row in rows:
                own = texts[round_ % len(texts) :] + texts
                await measure(engine, row, own, 1_000 * round_)
    finally:
        await engine.close()
    return rows


def run(settings: Settings, options: Options) -> None:
    """Measure and print; gains are against the first number."""
    rows = asyncio.run(compare(settings, options))
    print(HEADER)
    for row in rows:
        print(row.line(rows[0]), flush=True)
