"""Every format, decoded again by FFmpeg: as many samples as went in, and the same sound."""

from __future__ import annotations

import io
import struct

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.encoders import FORMATS, open_encoder, pcm16
from tontaube.types import Samples

RATE = 24_000
LOSSLESS = ("wav", "flac", "pcm")
# What a decoder that is told nothing about it gives first: LAME's delay with the decoder's own
# (529 + 576) and AAC's priming frame; both also round the end up to a frame.
DELAY = {"mp3": 1_105, "aac": 1_024}
FRAME = {"mp3": 576, "aac": 1_024}


def tone(samples: int) -> Samples:
    time = np.arange(samples) / RATE
    return (0.4 * np.sin(2 * np.pi * 220 * time * (1 + 0.2 * time))).astype(np.float32)


def encoded(name: str, samples: Samples, cuts: list[int], whole: bool = False) -> bytes:
    encoder = open_encoder(name, RATE, whole)
    pieces = [encoder.encode(piece) for piece in np.split(samples, sorted(cuts))]
    return b"".join([*pieces, encoder.finish()])


def decoded(name: str, data: bytes) -> Samples:
    """Mono samples at 24 kHz."""
    if name == "pcm":
        return (np.frombuffer(data, "<i2") / 32_767).astype(np.float32)
    resampler = av.AudioResampler("flt", "mono", RATE)
    with av.open(io.BytesIO(data)) as container:
        frames = [out for frame in container.decode(audio=0) for out in resampler.resample(frame)]
        frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_decoding_gives_the_sample_count(name: str, whole: bool) -> None:
    samples = tone(50_123)
    result = decoded(name, encoded(name, samples, [7, 9_600, 40_000], whole))
    padded = len(result) - len(samples)
    # The resampler from Opus' 48 kHz may round. A whole MP3's info frame tells the delay; only
    # what is to be cut beyond the last frame stays.
    if name == "mp3" and whole:
        assert 0 <= padded < FRAME["mp3"]
    elif name in DELAY:
        assert DELAY[name] - FRAME[name] <= padded <= DELAY[name] + 2 * FRAME[name]
    else:
        assert abs(padded) <= 1


@pytest.mark.parametrize("name", FORMATS)
def test_decoding_gives_the_same_sound(name: str) -> None:
    """Aligned by the known delay; no seam is audible although the cuts are odd."""
    samples = tone(48_000)
    result = decoded(name, encoded(name, samples, [1, 1_001, 20_011, 20_012]))
    result = result[DELAY.get(name, 0) :][: len(samples)]
    error = result - samples[: len(result)]
    tolerance = 1e-4 if name in LOSSLESS else 0.02
    assert float(np.sqrt(np.mean(np.square(error)))) < tolerance


@given(length=st.integers(0, 20_000), data=st.data())
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("name", FORMATS)
def test_bytes_do_not_depend_on_chunking(name: str, length: int, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, length), max_size=5))
    samples = tone(length)
    parts, once = encoded(name, samples, cuts), encoded(name, samples, [])
    if name in ("opus",):  # a random stream number and the pages' checksums differ
        assert len(parts) == len(once)
    else:
        assert parts == once


@pytest.mark.parametrize("name", FORMATS)
def test_the_first_bytes_come_early(name: str) -> None:
    """0.4 s in: something decodable out, so that playing can begin."""
    encoder = open_encoder(name, RATE)
    first = encoder.encode(tone(9_600))
    assert len(decoded(name, first)) > 4_800


@pytest.mark.parametrize("name", FORMATS)
def test_closing_is_possible_at_any_moment(name: str) -> None:
    for pieces in (0, 1):
        encoder = open_encoder(name, RATE)
        for _ in range(pieces):
            encoder.encode(tone(1_000))
        encoder.close()
        encoder.close()
    finished = open_encoder(name, RATE, whole=True)
    finished.finish()
    finished.close()


def test_wav_sizes() -> None:
    samples = tone(1_000)
    streamed, whole = encoded("wav", samples, [10]), encoded("wav", samples, [10], whole=True)
    assert struct.unpack_from("<I", streamed, 4) == struct.unpack_from("<I", streamed, 40)
    assert struct.unpack_from("<I", streamed, 4)[0] == 0xFFFF_FFFF
    assert struct.unpack_from("<I", whole, 4)[0] == len(whole) - 8
    assert struct.unpack_from("<I", whole, 40)[0] == len(whole) - 44 == 2_000
    assert encoded("wav", samples[:0], [])[:4] == b"RIFF"


def test_pcm_clips_and_survives_bad_floats() -> None:
    wild = np.array([2.0, -2.0, np.nan, np.inf, -np.inf, 0.5], np.float32)
    values = np.frombuffer(pcm16(wild), "<i2")
    assert values.tolist() == [32_767, -32_768, 0, 32_767, -32_767, 16_384]
