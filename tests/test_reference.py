"""Reference recordings: every container is read, every bad one refused with a reason."""

from __future__ import annotations

import io

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tontaube.codec.reference import MAX_BYTES, read_reference
from tontaube.errors import InvalidRequest
from tontaube.types import Samples

RATE = 24_000


def voice(seconds: float, rate: int = RATE) -> Samples:
    """Syllables of a 140 Hz buzz with pauses: moves and has a pitch, as speech does."""
    t = np.arange(int(seconds * rate)) / rate
    buzz = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 12))
    return (0.3 * buzz * np.clip(np.sin(2 * np.pi * 3 * t), 0, 1)).astype(np.float32)


def noise(seconds: float) -> Samples:
    rng = np.random.default_rng(1)
    return (0.1 * rng.standard_normal(int(seconds * RATE))).astype(np.float32)


def recording(
    samples: Samples,
    container: str = "wav",
    codec: str = "pcm_s16le",
    rate: int = RATE,
    layout: str = "mono",
) -> bytes:
    """``samples`` (mono at ``rate``) as a file's content; all channels carry the same."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        stream = output.add_stream(codec, rate=rate, layout=layout)
        channels = len(av.AudioLayout(layout).channels)
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(np.tile(samples, (channels, 1))), "fltp", layout
        )
        frame.sample_rate = rate
        convert = av.AudioResampler(
            stream.codec_context.format, layout, rate, stream.codec_context.frame_size or None
        )
        for piece in [*convert.resample(frame), *convert.resample(None)]:
            output.mux(stream.encode(piece))
        output.mux(stream.encode(None))
    return file.getvalue()


@pytest.mark.parametrize(
    ("container", "codec", "rate", "layout"),
    [
        ("wav", "pcm_u8", 8_000, "mono"),
        ("wav", "pcm_s16le", 24_000, "stereo"),
        ("wav", "pcm_s24le", 96_000, "5.1"),
        ("wav", "pcm_f32le", 44_100, "mono"),
        ("wav", "pcm_f64le", 48_000, "stereo"),
        ("mp3", "libmp3lame", 44_100, "stereo"),
        ("ipod", "aac", 44_100, "stereo"),
        ("adts", "aac", 22_050, "mono"),
        ("flac", "flac", 48_000, "mono"),
        ("ogg", "libopus", 48_000, "mono"),
        ("mov", "alac", 44_100, "mono"),
        ("webm", "libopus", 48_000, "stereo"),
        ("aiff", "pcm_s16be", 11_025, "mono"),
    ],
)
def test_reads_any_recording(container: str, codec: str, rate: int, layout: str) -> None:
    file = recording(voice(2.0, rate), container, codec, rate, layout)
    samples = read_reference(file)
    assert samples.dtype == np.float32 and samples.ndim == 1
    assert abs(samples.size / RATE - 2.0) < 0.12  # lossy codecs pad
    spectrum = np.abs(np.fft.rfft(samples))
    strongest = np.fft.rfftfreq(samples.size, 1 / RATE)[spectrum.argmax()]
    assert abs(strongest - 140) < 5  # neither faster nor slower


def test_a_recording_at_the_target_rate_is_kept_as_it_is() -> None:
    samples = voice(1.5)
    samples -= samples.mean()
    read = read_reference(recording(samples, codec="pcm_f32le"))
    assert read.size == samples.size
    assert np.abs(read - samples).max() < 1e-5


@given(st.floats(-60.0, 0.0))
@settings(max_examples=10, deadline=None)
def test_a_quiet_recording_is_raised_not_refused(decibels: float) -> None:
    quiet = voice(1.5) * np.float32(10 ** (decibels / 20))
    read = read_reference(recording(quiet, codec="pcm_f32le"))
    assert read.size == quiet.size
    assert 0.02 < np.abs(read).max() <= 1.0  # -36 dB of the active parts or more


def test_samples_beyond_full_scale_are_scaled_down() -> None:
    read = read_reference(recording(voice(1.5) * np.float32(1e20), codec="pcm_f32le"))
    assert 0.9 < np.abs(read).max() <= 1.0


def test_only_the_first_minute_is_used() -> None:
    long = recording(voice(63.0, 16_000), "flac", "flac", 16_000)
    assert read_reference(long).size == 60 * RATE


def test_voice_in_noise_and_whisper_are_voices() -> None:
    speech = voice(2.0)
    read_reference(recording(speech + 0.3 * noise(2.0)))
    whisper = noise(2.0) * np.clip(np.sin(2 * np.pi * 3 * np.arange(2 * RATE) / RATE), 0, 1)
    read_reference(recording(whisper.astype(np.float32)))


def pink(seconds: float) -> Samples:
    spectrum = np.fft.rfft(noise(seconds))
    spectrum /= np.sqrt(np.arange(spectrum.size) + 1.0)
    samples = np.fft.irfft(spectrum)
    return (0.1 * samples / samples.std()).astype(np.float32)


def damaged(samples: Samples, value: float) -> Samples:
    samples = samples.copy()
    samples[1000] = value
    return samples


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (b"", "empty"),
        (bytes(MAX_BYTES + 1), "larger than 10 MiB"),
        (b"these are no samples" * 50, "cannot decode"),
        (b"RIFF\xff\xff\xff\xffWAVEfmt ", "cannot decode"),
        (recording(voice(0.5)), "at least 1 s"),
        (recording(np.zeros(RATE * 2, np.float32)), "silent"),
        (recording(np.full(RATE * 2, 0.25, np.float32)), "silent"),
        (recording(noise(2.0)), "noise"),
        (recording(0.01 * noise(2.0), codec="pcm_f32le"), "noise"),
        (recording(pink(2.0)), "noise"),
        (recording(damaged(voice(2.0), np.nan), codec="pcm_f32le"), "not numbers"),
        (recording(damaged(voice(2.0), np.inf), codec="pcm_f32le"), "not numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refuses_what_holds_no_voice(file: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason) as caught:
        read_reference(file, field="audio_sample")
    assert caught.value.field == "audio_sample"


def test_files_that_name_other_files_are_not_followed(tmp_path: object) -> None:
    path = f"{tmp_path}/voice.wav"
    with open(path, "wb") as file:
        file.write(recording(voice(2.0)))
    lists = [
        f"ffconcat version 1.0\nfile {path}\n",
        f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nfile://{path}\n#EXT-X-ENDLIST\n",
        f"[playlist]\nFile1=file://{path}\nNumberOfEntries=1\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n",
    ]
    for text in lists:
        with pytest.raises(InvalidRequest, match="cannot decode"):
            read_reference(text.encode())


def test_a_video_without_sound_is_refused_and_its_pictures_are_not_decoded() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="matroska") as output:
        stream = output.add_stream("mjpeg", rate=5)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuvj420p"
        picture = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), "rgb24")
        output.mux(stream.encode(picture.reformat(format="yuvj420p")))
        output.mux(stream.encode(None))
    with pytest.raises(InvalidRequest, match=r"no audio|cannot decode"):
        read_reference(file.getvalue())


def test_a_cut_file_gives_what_it_holds() -> None:
    whole = recording(voice(4.0), "mp3", "libmp3lame")
    samples = read_reference(whole[: len(whole) // 2])
    assert 1.5 < samples.size / RATE < 2.5


@given(st.binary(min_size=1, max_size=400), st.integers(0, 3_000))
@settings(max_examples=40, deadline=None)
def test_damage_never_escapes_as_another_error(damage: bytes, at: int) -> None:
    file = bytearray(recording(voice(1.5, 16_000), "flac", "flac", 16_000))
    file[at : at + len(damage)] = damage
    try:
        read_reference(bytes(file))
    except InvalidRequest as error:
        assert error.field == "audio"
