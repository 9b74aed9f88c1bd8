"""Tempo: length, pitch, loudness and independence of how the input is cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tontaube.audio.tempo import Tempo
from tontaube.errors import InvalidRequest
from tontaube.types import Samples

RATE = 24_000


def voiced(seconds: float, pitch: float = 140.0) -> Samples:
    """A pitched tone with harmonics and a slow envelope, like a held vowel."""
    time = np.arange(round(seconds * RATE)) / RATE
    tone = sum(np.sin(2 * np.pi * pitch * k * time) / k for k in range(1, 9))
    return (0.2 * tone * (1 + 0.3 * np.sin(2 * np.pi * 3 * time))).astype(np.float32)


def stretch(samples: Samples, speed: float, cuts: list[int] | None = None) -> Samples:
    tempo = Tempo(speed, RATE)
    pieces = [tempo.push(piece) for piece in np.split(samples, sorted(cuts or []))]
    return np.concatenate([*pieces, tempo.finish()])


@given(
    speed=st.sampled_from([0.25, 0.5, 0.8, 1.0, 1.1, 1.5, 2.0, 3.3, 4.0]),
    length=st.integers(0, 12_000),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_output_does_not_depend_on_chunking(speed: float, length: int, data: st.DataObject) -> None:
    noise = np.random.default_rng(length).normal(0, 0.1, length).astype(np.float32)
    cuts = data.draw(st.lists(st.integers(0, length), max_size=6))
    whole = stretch(noise, speed)
    assert len(whole) == round(length / speed)
    np.testing.assert_array_equal(whole, stretch(noise, speed, cuts))


@pytest.mark.parametrize("speed", [2.6, 3.3, 4.0])
def test_fast_speech_is_not_longer_than_it_says(speed: float) -> None:
    """Whatever the length: a window looks at less than it stands for."""
    for length in range(0, 6_000, 48):
        samples = voiced(0.3)[:length]
        assert len(stretch(samples, speed)) == round(len(samples) / speed)


def test_speed_one_passes_through() -> None:
    samples = voiced(0.3)
    np.testing.assert_array_equal(stretch(samples, 1.0, [100, 5000]), samples)


def dominant(samples: Samples) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 1 << 17))
    return float(np.argmax(spectrum) * RATE / (1 << 17))


@pytest.mark.parametrize("speed", [0.5, 0.8, 1.25, 2.0, 4.0])
def test_pitch_and_loudness_stay(speed: float) -> None:
    samples = voiced(2.0)
    stretched = stretch(samples, speed)
    assert dominant(stretched) == pytest.approx(dominant(samples), rel=0.02)
    inner = stretched[500:-500]
    assert np.std(inner) == pytest.approx(np.std(samples), rel=0.1)


@pytest.mark.parametrize("speed", [0.6, 1.7])
def test_no_clicks(speed: float) -> None:
    samples = voiced(1.0)
    steps = np.abs(np.diff(stretch(samples, speed)[:-500]))
    assert steps.max() < 1.3 * np.abs(np.diff(samples)).max()


def test_memory_is_bounded_and_output_prompt() -> None:
    """Half speed gives nearly twice the samples at once; the held-back part stays short."""
    tempo = Tempo(0.5, RATE)
    given_back = 0
    for second in range(1, 5):
        given_back += len(tempo.push(voiced(1.0)))
        assert given_back > 2 * (second - 0.12) * RATE


@pytest.mark.parametrize("speed", [0.0, 0.2, 4.1, float("nan")])
def test_impossible_speeds_are_refused(speed: float) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Tempo(speed, RATE)
    assert caught.value.field == "speed"
