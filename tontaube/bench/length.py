"""``python -m tontaube.bench length``: does a second cost the same in minute 10 as in minute 1?

The codec's time for each, in one utterance and in turns with a short one; and the memory of a
process while it speaks a text of 40 000 characters.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import numpy as np
import torch

from tontaube.assembly import open_codec
from tontaube.bench.voice import TEXTS
from tontaube.codec.decoder import StreamDecoder
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.sources import open_bundle
from tontaube.stages.quality import FRAMES_PER_SECOND
from tontaube.types import STREAMS, Codes, SpeechRequest

_PIECE = 50  # frames


def codec_seconds(settings: Settings, minutes: int) -> list[tuple[float, float]]:
    """CPU seconds for a second of audio ``minutes`` into an utterance and in one that begins, piece
    by piece in turns: ``(late, early)``."""
    bundle = open_bundle(settings.model, settings.parts)
    network, join = open_codec(bundle, torch.device("cpu"))
    codes = _codes(bundle.description.codec.config)
    late = StreamDecoder(network, join)
    skipped = round((minutes - 1) * 60 * FRAMES_PER_SECOND)
    for _ in range(skipped // _PIECE):
        late.push(codes[:, :_PIECE])
    early = StreamDecoder(network, join)
    pairs = []
    for at in range(0, round(60 * FRAMES_PER_SECOND), _PIECE):
        piece = codes[:, at % 700 :][:, :_PIECE]
        pair = []
        for stream in (late, early):
            start = time.thread_time()
            samples = stream.push(piece)
            pair.append((time.thread_time() - start) / (len(samples) / network.sample_rate))
        pairs.append((pair[0], pair[1]))
    return pairs[1:]  # the first piece of an utterance lacks what is withheld


def _codes(config: dict[str, object]) -> Codes:
    """A minute of any codes [4, n]."""
    sizes = [int(str(config.get("semantic_codes", 64)))]
    sizes += [int(str(config.get("acoustic_codes", 32)))] * (STREAMS - 1)
    random = np.random.default_rng(0)
    return np.stack([random.integers(0, size, 800) for size in sizes])


def resident_bytes(process: int | str = "self") -> int:
    """Of a process by its number, or of this one (Linux)."""
    pages = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def memory(settings: Settings, characters: int) -> list[tuple[float, int]]:
    """``(seconds of audio so far, resident bytes)`` at every chunk of one long text."""
    lines = (TEXTS / "english.txt").read_text("utf-8").splitlines()
    text = " ".join(lines * (characters // sum(map(len, lines)) + 1))[:characters]
    engine = await Engine.load(settings)
    seen: list[tuple[float, int]] = []
    samples = 0
    try:
        await engine.warm_up()
        async with engine.stream(SpeechRequest(text=text, seed=0)) as stream:
            async for chunk in stream:
                samples += len(chunk.samples)
                seen.append((samples / engine.description.sample_rate, resident_bytes()))
    finally:
        await engine.close()
    return seen


def run(settings: Settings, minutes: int, characters: int) -> None:
    """Measure and print."""
    late, early = np.array(codec_seconds(settings, minutes)).T
    print(
        f"codec, ms of CPU for a second of audio: minute 1 {1e3 * np.median(early):.2f}, "
        f"minute {minutes} {1e3 * np.median(late):.2f}, ratio {np.median(late / early):.3f}"
    )
    if not characters:
        return
    seconds, resident = np.array(asyncio.run(memory(settings, characters))).T
    quarters = [round(share * (len(seconds) - 1)) for share in (0.25, 0.5, 0.75, 1)]
    sizes = ", ".join(f"{resident[at] / 2**20:.1f}" for at in quarters)
    last = slice(quarters[2], None)
    slope = np.polyfit(seconds[last] / 60, resident[last] / 2**20, 1)[0]
    print(
        f"{characters} characters, {seconds[-1] / 60:.1f} minutes of speech: resident memory "
        f"{sizes} MiB after each quarter; in the last {slope:+.3f} MiB a minute"
    )
