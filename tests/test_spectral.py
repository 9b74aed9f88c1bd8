"""The small bundle's codec: windows join exactly, whatever the cuts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tontaube.codec.base import Request, Window
from tontaube.codec.build import SpectralConfig, build_spectral
from tontaube.codec.decoder import StreamDecoder, decode
from tontaube.codec.spectral import between_steps, pulse_train
from tontaube.codec.spectral_codec import SpectralCodec

TINY = SpectralConfig(
    latent=16, semantic_dim=16, semantic_hidden=24, semantic_encoder_blocks=1,
    semantic_decoder_blocks=2, semantic_codes=64, acoustic_codes=32, encoder_dim=16,
    encoder_hidden=24, decoder_dim=16, decoder_hidden=24, decoder_blocks=3,
)  # fmt: skip


@pytest.fixture(scope="module")
def codec() -> SpectralCodec:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = build_spectral(TINY)
        with torch.no_grad():
            for parameter in network.parameters():  # louder than at the start of training
                parameter.add_(torch.randn_like(parameter) * 0.15)
    return SpectralCodec(network, 4)


def some_codes(frames: int) -> np.ndarray:
    generator = np.random.default_rng(frames)
    rows = [generator.integers(0, size, frames) for size in (64, 32, 32, 32)]
    return np.stack(rows).astype(np.int64)


@settings(deadline=None, max_examples=15)
@given(cuts=st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_streamed_is_whole(codec: SpectralCodec, cuts: list[int]) -> None:
    codes = some_codes(sum(cuts) + 3)
    whole = decode(codec, codes)
    stream = StreamDecoder(codec)
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(stream.push(codes[:, at : at + cut]))
        at += cut
    pieces += [stream.push(codes[:, at:]), stream.finish()]
    streamed = np.concatenate(pieces)
    assert len(streamed) == codes.shape[1] * codec.hop
    assert np.abs(whole).max() > 0.01
    np.testing.assert_allclose(streamed, whole, atol=1e-6)


def test_company_changes_nothing(codec: SpectralCodec) -> None:
    """Windows of several streams decoded together, each as alone, to the bit."""
    requests = [
        Request(torch.from_numpy(some_codes(size + 2)), Window(0, 0, size, False), state)
        for size, state in ((1, codec.initial_state()), (9, codec.initial_state()))
    ]
    alone = [codec.decode_windows([request])[0] for request in requests]
    together = codec.decode_windows(requests)
    for (samples, state), (same, same_state) in zip(alone, together, strict=True):
        assert torch.equal(samples, same)
        assert torch.equal(state.phase, same_state.phase)
    assert len(together[1][0]) == 9 * codec.hop


def test_context_is_enough_and_not_more_than_stated(codec: SpectralCodec) -> None:
    """Codes outside the stated context do not change a frame's samples; those inside do."""
    codes = some_codes(60)
    whole = decode(codec, codes)
    frame = 40
    for distance, changes in (
        (codec.right_context, True),
        (codec.right_context + 1, False),
    ):
        other = codes.copy()
        other[:, frame + distance :] = (other[:, frame + distance :] + 1) % 32
        same = decode(codec, other)[frame * codec.hop : (frame + 1) * codec.hop]
        kept = whole[frame * codec.hop : (frame + 1) * codec.hop]
        assert (np.abs(same - kept).max() > 1e-6) == changes


def test_encode_counts_frames(codec: SpectralCodec) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 24_000).astype(np.float32)
    codes = codec.encode(noise)
    assert codes.shape == (4, 13)
    assert codes.min() >= 0


@given(pitch=st.floats(60, 500), step=st.floats(-1e-4, 1e-4))
def test_pulses_are_continuous_in_pitch(pitch: float, step: float) -> None:
    """The number of harmonics changes with the pitch; the sum must not jump when it does."""
    cycles = torch.linspace(0.05, 0.95, 64, dtype=torch.float64)[None]
    gate = torch.ones(1, 64)

    def pulses(hertz: float) -> torch.Tensor:
        return pulse_train(cycles, torch.full((1, 64), hertz), gate)

    assert (pulses(pitch) - pulses(pitch + step)).abs().max() < 0.05


def test_between_steps_holds_the_ends() -> None:
    values = between_steps(torch.tensor([[1.0, 3.0]]))[0]
    assert values.shape == (480,)
    assert values[0] == 1.0 and values[-1] == 3.0
    assert torch.all(values.diff() >= 0)
