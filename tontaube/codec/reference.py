"""A recording in any container → mono float32 samples fit to be a voice's reference.

Decoding is bounded in time and memory, opens nothing but the given bytes, and every refusal says
what is wrong with the recording. It knows no model.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import av
import numpy as np

from tontaube.errors import InvalidRequest
from tontaube.types import Samples

MAX_BYTES = 10 * 2**20
MIN_SECONDS = 1.0
MAX_SECONDS = 60.0  # what follows is not used (contract, section 8)

# Containers of recordings; none of these opens other files or addresses, as playlists do.
_FORMATS = "aac,aiff,amr,asf,au,caf,flac,matroska,mov,mp3,ogg,w64,wav"
# Only these decoders may run, also while the container is probed: no pictures, no video.
_DECODERS = (
    *("aac", "aac_fixed", "alac", "amrnb", "amrwb", "flac", "libopus", "mp3", "mp3float", "opus"),
    *("speex", "vorbis", "wmapro", "wmav1", "wmav2"),
)
_DECODER_FAMILIES = ("pcm_", "adpcm_")

_FLOOR = 1e-12  # keeps logarithms finite
_SILENT_DB = -80.0  # level of the active parts below which nothing can be made of a recording
_QUIET_DB = -36.0  # below this a recording is raised …
_TARGET_DB = -26.0  # … to this level, as far as its peak allows
_PEAK = 0.95
_SPEECH_BAND = (200.0, 800.0)  # Hz; voices are strong here, and hiss and rumble are not
_ACTIVE_DB = 20.0  # frames this far below the loud ones are pauses
_STEADY_DB = 2.5  # the spread of a noise's level is smaller; that of speech and music is not
_VOICED_SHARE = 0.05  # of the frames have a pitch at least
_PERIODIC = 0.6  # normalised autocorrelation of a frame with a pitch


def read_reference(audio: bytes, *, sample_rate: int = 24_000, field: str = "audio") -> Samples:
    """Decode, check and level a reference recording.

    ``audio`` is a file's content: wav, mp3, m4a, flac, ogg, webm and what else is a recording, at
    any rate, channel count and sample format. Returns 1 to 60 s of mono float32 within -1..1 at
    ``sample_rate``; a longer recording is cut, a quiet one raised.

    Raises InvalidRequest (naming ``field``) if it cannot be decoded, is larger than 10 MiB, shorter
    than a second, silent, nothing but noise, or has values that are not numbers.
    """
    if not audio:
        raise InvalidRequest("the reference recording is empty", field)
    if len(audio) > MAX_BYTES:
        size = MAX_BYTES // 2**20
        raise InvalidRequest(f"the reference recording is larger than {size} MiB", field)
    samples = _read(audio, sample_rate, field)
    if samples.size < MIN_SECONDS * sample_rate:
        seconds = samples.size / sample_rate
        raise InvalidRequest(
            f"the reference recording has {seconds:.2f} s of audio; at least 1 s is needed", field
        )
    if not np.isfinite(samples).all():
        raise InvalidRequest("the reference recording has values that are not numbers", field)
    samples = _centred(samples)
    level = _active_level(samples, sample_rate)
    if level < _SILENT_DB:
        raise InvalidRequest("the reference recording is silent", field)
    if _is_noise(samples, sample_rate):
        raise InvalidRequest("the reference recording is only noise; no voice found in it", field)
    return _leveled(samples, level)


def _read(audio: bytes, sample_rate: int, field: str) -> Samples:
    """The first 60 s as mono float32 [samples]; what is damaged after a good start is left out."""
    wanted = int(MAX_SECONDS * sample_rate)
    pieces: list[Samples] = []
    try:
        for piece in _decode(audio, sample_rate):
            pieces.append(piece)
            wanted -= piece.size
            if wanted <= 0:
                break
    except (av.FFmpegError, ValueError, OverflowError, MemoryError) as error:
        if not pieces:
            message = "cannot decode the reference recording; give wav, mp3, m4a, flac, ogg or webm"
            raise InvalidRequest(message, field) from error
    if not pieces:
        raise InvalidRequest("the reference recording has no audio", field)
    return np.concatenate(pieces)[: int(MAX_SECONDS * sample_rate)]


def _decode(audio: bytes, sample_rate: int) -> Iterator[Samples]:
    families = (name for name in av.codecs_available if name.startswith(_DECODER_FAMILIES))
    options = {
        "format_whitelist": _FORMATS,
        "codec_whitelist": ",".join((*_DECODERS, *families)),
        "protocol_whitelist": "none",
    }
    file = io.BytesIO(audio)
    with av.open(file, "r", options=options, metadata_errors="ignore") as container:
        if not container.streams.audio:
            return
        resampler: Any = None
        layout: tuple[Any, ...] | None = None
        for frame in container.decode(container.streams.audio[0]):
            found = (frame.format.name, frame.layout.name, frame.sample_rate)
            if found != layout:  # chained files change in the middle
                if resampler is not None:
                    yield from _samples(resampler.resample(None))
                resampler = av.AudioResampler("flt", "mono", sample_rate)
                layout = found
            frame.pts = None  # gaps in time stamps are no silence
            yield from _samples(resampler.resample(frame))
        if resampler is not None:
            yield from _samples(resampler.resample(None))


def _samples(frames: list[Any]) -> Iterator[Samples]:
    for frame in frames:
        yield frame.to_ndarray().reshape(-1).astype(np.float32, copy=True)


def _frames(samples: Samples, length: int) -> Samples:
    """[samples] → [n, length], without overlap; the rest is left out."""
    return samples[: samples.size // length * length].reshape(-1, length)


def _levels(frames: Samples) -> Samples:
    """Frames [n, length] → their levels in dB relative to full scale, [n]."""
    power = np.square(frames).mean(axis=1)
    levels: Samples = 10 * np.log10(power + _FLOOR)
    return levels


def _active_level(samples: Samples, sample_rate: int) -> float:
    """Level of the louder parts, in dB: what a listener would take for the recording's level."""
    return float(np.percentile(_levels(_frames(samples, sample_rate // 50)), 90))


def _is_noise(samples: Samples, sample_rate: int) -> bool:
    """Whether the level stands still where voices are, and hardly a frame has a pitch.

    Both must hold: a whisper has no pitch, a sung note stands still.
    """
    spectrum = np.fft.rfft(samples)
    frequency = np.fft.rfftfreq(samples.size, 1 / sample_rate)
    low, high = _SPEECH_BAND
    spectrum[(frequency < low) | (frequency > high)] = 0
    band = np.fft.irfft(spectrum, samples.size).astype(np.float32)
    frames = _frames(band, sample_rate // 20)
    levels = _levels(frames)
    active = levels > np.percentile(levels, 95) - _ACTIVE_DB
    steady = float(np.std(levels[active])) < _STEADY_DB
    return steady and _voiced_share(frames[active], sample_rate) < _VOICED_SHARE


def _voiced_share(frames: Samples, sample_rate: int) -> float:
    """Share of the frames [n, 50 ms] that repeat themselves at 60 to 400 Hz."""
    length = frames.shape[1]
    shortest, longest = sample_rate // 400, sample_rate // 60
    spectrum = np.fft.rfft(frames, 2 * length)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[:, :longest]
    overlap = length - np.arange(shortest, longest)  # fewer products at longer lags
    peak = (correlation[:, shortest:] / overlap).max(axis=1)
    return float(np.mean(peak > _PERIODIC * (correlation[:, 0] / length + _FLOOR)))


def _centred(samples: Samples) -> Samples:
    """Without its constant part, and scaled down where float samples leave -1..1."""
    wide = samples.astype(np.float64)
    wide -= wide.mean()
    centred: Samples = (wide / max(1.0, np.abs(wide).max())).astype(np.float32)
    return centred


def _leveled(samples: Samples, level: float) -> Samples:
    """A quiet recording raised as far as its peak allows; others as they are."""
    if level >= _QUIET_DB:
        return samples
    gain = min(10 ** ((_TARGET_DB - level) / 20), _PEAK / float(np.abs(samples).max()))
    return samples * np.float32(max(1.0, gain))
