"""``python -m tests.vllm.soak --minutes 30``: random requests to ``app.py`` on the vLLM engine, of
which some leave early; then what is left in vLLM's engines, and how the process has grown.

It exits with 1 if a request failed, one is left, or memory grew.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from tests.vllm.app import App, running_app
from tontaube.bench.load import TEXTS, read_texts

FORMATS = ("wav", "pcm", "mp3", "opus")
MIB = 2**20
SETTLED = 120.0  # seconds after which memory is looked at
LONG_ENOUGH = 600.0  # seconds of load from which on growth is judged
GROWTH = 1.0  # MiB a minute, at most


@dataclass
class Record:
    """What became of the requests, and the process's resident bytes by the second."""

    outcomes: Counter[str] = field(default_factory=Counter)
    audio_bytes: int = 0
    memory: list[tuple[float, int]] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return sum(n for outcome, n in self.outcomes.items() if outcome not in ("whole", "left"))


class Soak:
    """Poisson arrivals; ``leaving`` of them close the connection at a random moment."""

    def __init__(self, app: App, rate: float, leaving: float, seed: int) -> None:
        self.record = Record()
        self._app = app
        self._rate = rate
        self._leaving = leaving
        self._random = np.random.default_rng(seed)
        self._texts = read_texts(TEXTS)

    async def run(self, seconds: float) -> None:
        """All requests, to the end of the last one."""
        watch = asyncio.create_task(self._watch())
        start = time.monotonic()
        tasks = []
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=600, limits=limits) as client:
            moment = float(self._random.exponential(1 / self._rate))
            while moment < seconds:
                await asyncio.sleep(max(0.0, start + moment - time.monotonic()))
                tasks.append(asyncio.create_task(self._request(client)))
                moment += float(self._random.exponential(1 / self._rate))
            await asyncio.gather(*tasks)
        watch.cancel()

    async def _request(self, client: httpx.AsyncClient) -> None:
        random = self._random
        body = {
            "model": "tontaube-v1",
            "voice": "alloy",
            "input": str(random.choice(self._texts)),
            "seed": int(random.integers(2**31)),
            "response_format": str(random.choice(FORMATS)),
        }
        patience = float(random.exponential(3.0)) if random.random() < self._leaving else None
        try:
            async with asyncio.timeout(patience):
                self.record.outcomes[await self._listen(client, body)] += 1
        except TimeoutError:
            self.record.outcomes["left"] += 1
        except httpx.HTTPError as error:
            print(f"{time.strftime('%X')} {error!r}", flush=True)
            self.record.outcomes[type(error).__name__] += 1

    async def _listen(self, client: httpx.AsyncClient, body: dict[str, object]) -> str:
        address = f"{self._app.url}/v1/audio/speech"
        received = 0
        async with client.stream("POST", address, json=body) as answer:
            async for piece in answer.aiter_raw():
                received += len(piece)
        self.record.audio_bytes += received
        if answer.status_code != 200:
            return f"HTTP {answer.status_code}"
        return "whole" if received > 1_000 else "no audio"

    async def _watch(self) -> None:
        start = time.monotonic()
        while True:
            self.record.memory.append((time.monotonic() - start, self._app.memory()))
            await asyncio.sleep(1.0)


def report(app: App, record: Record, seconds: float) -> bool:
    """Print; whether all is well."""
    empty = app.idle()
    left = app.unfinished()
    outcomes = ", ".join(f"{n} {outcome}" for outcome, n in sorted(record.outcomes.items()))
    print(f"requests   {sum(record.outcomes.values())}: {outcomes}; {record.failures} failures")
    print(f"unfinished {' '.join(f'{stage} {n:.0f}' for stage, n in left.items())}")
    print(f"streams    {app.metric('tontaube_active_streams')['']:.0f} active")
    print(f"steps      {app.metric('tontaube_steps_total')}")
    moments, sizes = np.array(record.memory).T
    late = moments >= min(SETTLED, moments[-1] / 2)
    grown = sizes[-1] - sizes[late][0]
    slope = np.polyfit(moments[late] / 60, sizes[late] / MIB, 1)[0]
    print(
        f"memory     {sizes[late][0] / MIB:.0f} MiB at {moments[late][0]:.0f} s, "
        f"{sizes[-1] / MIB:.0f} MiB at {moments[-1]:.0f} s: {grown / MIB:+.1f} MiB, "
        f"slope {slope:+.2f} MiB a minute"
    )
    flat = seconds < LONG_ENOUGH or slope < GROWTH
    return empty and flat and not record.failures and bool(record.outcomes["whole"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.vllm.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=0.25, help="requests a second")
    parser.add_argument("--leaving", type=float, default=0.3, help="share that leaves early")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        # every request is made anew; who waits is not refused on a machine that is busy
        running_app(
            Path(folder), phrase_cache_bytes="0", progress_timeout="600", wait_timeout="600"
        ) as app,
    ):
        soak = Soak(app, args.rate, args.leaving, args.seed)
        asyncio.run(soak.run(60 * args.minutes))
        well = report(app, soak.record, 60 * args.minutes)
        if not well:
            print(app.log.read_text())
    sys.exit(not well)


if __name__ == "__main__":
    main()
