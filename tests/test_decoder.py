"""Streaming decode = whole decode at any chunking, in bounded memory, through one codec or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tontaube.codec.base import Request, Window
from tontaube.codec.decoder import Join, StreamDecoder, decode
from tontaube.types import Codes, Samples

HOP = 192


@dataclass
class FakeCodec:
    """A codec whose samples depend on 3 frames before and ``right_context`` after each frame; with
    ``phase`` it is an oscillator whose phase is its state. It records the windows it was given."""

    right_context: int = 2
    phase: bool = False
    left_context: int = 3
    sample_rate: int = 24_000
    hop: int = HOP
    streams: int = 2
    lost: int = 4  # samples missing at the very end, as in DAC's decoder
    lengths: list[int] = field(default_factory=list)

    def encode(self, samples: Samples) -> torch.Tensor:
        raise NotImplementedError

    def initial_state(self) -> Any:
        return torch.zeros((), dtype=torch.float64) if self.phase else None

    def decode_windows(self, requests: Sequence[Request[Any]]) -> list[tuple[torch.Tensor, Any]]:
        return [self._decode(r.codes, r.window, r.state) for r in requests]

    def _decode(self, codes: torch.Tensor, window: Window, state: Any) -> tuple[torch.Tensor, Any]:
        self.lengths.append(codes.shape[1])
        level = codes.double().sum(0) / 100
        size = 1 + self.left_context + self.right_context
        kernel = torch.arange(1, size + 1).double() / size**2
        padded = torch.nn.functional.pad(level, (self.left_context, self.right_context))
        smooth = torch.nn.functional.conv1d(padded[None, None], kernel[None, None])[0, 0]
        first = window.keep_from - window.start
        value = smooth[first : first + window.keep_to - window.keep_from].repeat_interleave(HOP)
        if self.phase:
            phase = state + torch.cumsum(0.01 + 0.02 * value, 0)
            state = phase[-1].clone()
            value = torch.sin(2 * torch.pi * phase)
        stop = window.keep_to == window.start + codes.shape[1]
        return value[: value.shape[0] - stop * self.lost].float(), state


class Smoother:
    """A causal second codec with a carried state: a decaying average over blocks of 320."""

    hop = 320

    def initial_state(self) -> Any:
        return torch.zeros(())

    def process(self, samples: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        blocks = samples.reshape(-1, self.hop)
        out = []
        for block in blocks:
            out.append(0.5 * block + 0.5 * state)
            state = 0.5 * state + 0.5 * block.mean()
        return torch.cat(out), state


def codes_of(frames: int, seed: int = 0) -> Codes:
    return np.random.default_rng(seed).integers(0, 50, (2, frames))


def streamed(stream: StreamDecoder, codes: Codes, cuts: list[int]) -> Samples:
    pieces, at = [], 0
    for size in [*cuts, codes.shape[1]]:
        pieces.append(stream.push(codes[:, at : at + size]))
        at = min(at + size, codes.shape[1])
    return np.concatenate([*pieces, stream.finish()])


def whole(codec: FakeCodec, codes: Codes) -> Samples:
    """One window over everything, with no streaming code involved."""
    window = Window(0, 0, codes.shape[1], final=True)
    request = Request(torch.from_numpy(codes), window, codec.initial_state())
    [(samples, _)] = codec.decode_windows([request])
    return samples.numpy()


chunkings = st.lists(st.integers(0, 30), max_size=30)


@given(st.integers(1, 80), chunkings, st.booleans(), st.integers(0, 6), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_any_chunking_equals_the_whole(
    frames: int, cuts: list[int], phase: bool, right: int, window_frames: int
) -> None:
    codec = FakeCodec(right_context=right, phase=phase, lost=4 if right else 0)
    codes = codes_of(frames, seed=frames)
    expected = whole(codec, codes)
    stream = StreamDecoder(codec, Join(window_frames=window_frames))
    samples = streamed(stream, codes, cuts)
    assert samples.dtype == np.float32
    assert samples.shape == expected.shape == (frames * HOP - codec.lost,)
    assert np.abs(samples - expected).max() < 1e-5


@given(st.integers(1, 80), chunkings)
@settings(max_examples=40, deadline=None)
def test_any_chunking_equals_the_whole_through_a_second_codec(frames: int, cuts: list[int]) -> None:
    codec = FakeCodec(phase=True)
    codes = codes_of(frames, seed=frames)
    first = whole(codec, codes)
    padded = np.pad(first, (0, -first.size % Smoother.hop))
    expected, _ = Smoother().process(torch.from_numpy(padded), torch.zeros(()))
    samples = streamed(StreamDecoder(codec, Join(Smoother())), codes, cuts)
    assert samples.shape == first.shape
    assert np.abs(samples - expected.numpy()[: first.size]).max() < 1e-5


def test_through_a_second_codec_samples_come_in_quanta_of_both() -> None:
    codec = FakeCodec(right_context=27)
    stream = StreamDecoder(codec, Join(Smoother(), withheld_frames=5))
    assert (stream.withheld_frames, stream.quantum_frames) == (5, 5)
    codes = codes_of(43)
    assert stream.push(codes[:, :9]).size == 0
    assert stream.push(codes[:, 9:10]).size == 5 * HOP
    assert stream.push(codes[:, 10:40]).size == 30 * HOP
    assert stream.push(codes[:, 40:43]).size == 0
    assert stream.finish().size == 8 * HOP - codec.lost


@pytest.mark.parametrize("kind", ["sine", "silence", "noise"])
def test_an_early_edge_leaves_no_jump(kind: str) -> None:
    # Fewer frames are withheld than the codec looks ahead: both sides of a seam are guesses.
    codec = FakeCodec(right_context=27)
    t = np.arange(200)
    levels = {
        "sine": 25 + 25 * np.sin(t / 5),
        "silence": np.zeros(200),
        "noise": np.random.default_rng(0).integers(0, 50, 200),
    }
    codes = np.stack([levels[kind], levels[kind]]).astype(np.int64)
    stream = StreamDecoder(codec, Join(Smoother(), withheld_frames=5))
    samples = streamed(stream, codes, [10] * 20)
    assert samples.size == 200 * HOP - codec.lost
    jumps = np.abs(np.diff(samples))
    seams = jumps[5 * HOP - 1 :: 5 * HOP]
    assert seams.max() <= np.delete(jumps, np.arange(5 * HOP - 1, jumps.size, 5 * HOP)).max()


def test_memory_and_windows_do_not_grow() -> None:
    codec = FakeCodec(right_context=4)
    stream = StreamDecoder(codec, Join(window_frames=20))
    held = []
    for chunk in range(300):
        stream.push(codes_of(7, seed=chunk))
        held.append(stream.held_frames)
    assert max(held) <= codec.left_context + codec.right_context
    assert max(codec.lengths) <= codec.left_context + 7 + codec.right_context
    decode(codec, codes_of(1_000), Join(window_frames=20))
    assert max(codec.lengths) <= codec.left_context + 20 + 2 * codec.right_context


def test_an_empty_stream_is_silent() -> None:
    stream = StreamDecoder(FakeCodec())
    assert stream.push(codes_of(0)).size == 0
    assert stream.finish().size == 0


def test_misuse_is_told() -> None:
    stream = StreamDecoder(FakeCodec())
    with pytest.raises(ValueError, match="codes must be"):
        stream.push(np.zeros((3, 4), np.int64))
    stream.finish()
    with pytest.raises(RuntimeError, match="finished"):
        stream.push(codes_of(3))
    with pytest.raises(RuntimeError, match="finished"):
        stream.finish()
    with pytest.raises(ValueError, match="at least 1"):
        Join(window_frames=0)
    with pytest.raises(ValueError, match="withheld"):
        StreamDecoder(FakeCodec(right_context=27, phase=True), Join(Smoother()))
