"""A sine sweep, silence and speech through the shipped codec in pieces: no edge can be heard."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch

from tontaube.assembly import open_codec
from tontaube.bundle import MINI
from tontaube.codec.base import CodecNetwork
from tontaube.codec.decoder import StreamDecoder
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.sources import open_bundle
from tontaube.types import Samples, SpeechRequest

torch.set_num_threads(1)
RATE = 24_000
SIGNALS = ("sweep", "silence", "speech")


@pytest.fixture(scope="module")
def codec() -> CodecNetwork:
    return open_codec(open_bundle(str(MINI)), torch.device("cpu"))[0]


@pytest.fixture(scope="module")
def signals() -> dict[str, Samples]:
    async def speech() -> Samples:
        engine = await Engine.load(Settings(device="cpu", engine="torch"))
        try:
            text = "The harbour was quiet, and the last boats came home."
            async with engine.stream(SpeechRequest(text=text, seed=0)) as stream:
                return await stream.samples()
        finally:
            await engine.close()

    seconds = np.arange(3 * RATE) / RATE
    # 60 Hz to 6 kHz, evenly in pitch
    turns = 60 * 3 / np.log(100) * (100 ** (seconds / 3) - 1)
    sweep = 0.3 * np.sin(2 * np.pi * turns)
    return {
        "sweep": sweep.astype(np.float32),
        "silence": np.zeros(3 * RATE, np.float32),
        "speech": asyncio.run(speech()),
    }


def bends(samples: Samples) -> Samples:
    """How abruptly the signal changes at each sample: a click is a few large values."""
    bent: Samples = np.abs(np.diff(samples, n=2))
    return bent


@pytest.mark.parametrize("frames", [1, 3, 10])
@pytest.mark.parametrize("signal", SIGNALS)
def test_edges_are_as_smooth_as_the_rest(
    signal: str, frames: int, codec: CodecNetwork, signals: dict[str, Samples]
) -> None:
    codes = codec.encode(signals[signal]).numpy()
    decoder = StreamDecoder(codec)
    pieces = [decoder.push(codes[:, at : at + frames]) for at in range(0, codes.shape[1], frames)]
    pieces = [piece for piece in (*pieces, decoder.finish()) if len(piece)]
    samples = np.concatenate(pieces)
    edges = np.cumsum([len(piece) for piece in pieces])[:-1]
    assert len(samples) == codes.shape[1] * codec.hop and len(edges) >= 2
    bent = bends(samples)
    at_edges = bent[(edges[:, None] + np.arange(-2, 1)).ravel()]
    # as many places elsewhere, at the same distance from each other, in the middle of pieces
    others = [bent[(edges[:, None] + shift + np.arange(-2, 1)) % len(bent)].ravel()
              for shift in range(-900, 901, 60) if abs(shift) > 100]  # fmt: skip
    assert at_edges.max() <= 1.2 * max(found.max() for found in others) + 1e-6
    assert at_edges.mean() <= 1.2 * max(found.mean() for found in others) + 1e-6
