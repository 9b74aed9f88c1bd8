"""Samples as they come → the bytes of one audio file; one persistent encoder a stream.

A streamed file is never rewritten: its header says "length unknown". A whole one (``whole=True``)
comes out of ``finish`` in one piece, with true sizes and the codec's delay noted where the format
can (WAV, FLAC, MP3's info frame).
"""

from __future__ import annotations

import io
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, cast

import av
import numpy as np

from tontaube.types import Samples

_UNKNOWN_SIZE = 0xFFFF_FFFF
_PIECE = 4_800  # samples given to a codec at once


class Encoder(Protocol):
    """Bytes may lag behind samples; all bytes joined are the file."""

    def encode(self, samples: Samples) -> bytes:
        """Float samples in -1..1 (others are clipped) → the bytes that are ready."""

    def finish(self) -> bytes:
        """The rest of the file: the codec's tail and the container's trailer."""

    def close(self) -> None:
        """Free the codec, whether finished or not; waits for a call made in another thread."""


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """A response format: its media type and, unless it is plain PCM, FFmpeg's muxer and codec."""

    media_type: str
    muxer: str = ""
    codec: str = ""
    bit_rate: int | None = None
    streamed_options: Mapping[str, str] = field(default_factory=dict)


FORMATS: Mapping[str, AudioFormat] = MappingProxyType(
    {
        # A streamed MP3 has no info frame: it would declare zero frames for good.
        "mp3": AudioFormat(
            "audio/mpeg", "mp3", "libmp3lame", 96_000, {"write_xing": "0", "id3v2_version": "0"}
        ),
        # Pages of 20 ms: otherwise the muxer holds a second back.
        "opus": AudioFormat(
            "audio/ogg; codecs=opus", "ogg", "libopus", 48_000, {"page_duration": "20000"}
        ),
        "aac": AudioFormat("audio/aac", "adts", "aac", 96_000),
        "flac": AudioFormat("audio/flac", "flac", "flac"),
        "wav": AudioFormat("audio/wav"),
        "pcm": AudioFormat("audio/pcm"),
    }
)


def open_encoder(name: str, sample_rate: int, whole: bool = False) -> Encoder:
    """The encoder for a key of FORMATS."""
    audio_format = FORMATS[name]
    if audio_format.muxer:
        return ContainerEncoder(audio_format, sample_rate, whole)
    return WavEncoder(sample_rate, whole) if name == "wav" else PcmEncoder()


def pcm16(samples: Samples) -> bytes:
    """Float samples → signed 16-bit little-endian, rounded and clipped; NaN becomes silence."""
    scaled = np.rint(np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0) * 32_767.0)
    data: bytes = np.clip(scaled, -32_768, 32_767).astype("<i2").tobytes()
    return data


class PcmEncoder:
    """Headerless signed 16-bit little-endian samples."""

    def encode(self, samples: Samples) -> bytes:
        return pcm16(samples)

    def finish(self) -> bytes:
        return b""

    def close(self) -> None:
        pass


class WavEncoder:
    """RIFF around PCM. Streamed, both size fields say 0xFFFFFFFF: "until the end"."""

    def __init__(self, sample_rate: int, whole: bool = False) -> None:
        self._sample_rate = sample_rate
        self._whole = whole
        self._begun = False
        self._held = bytearray()

    def encode(self, samples: Samples) -> bytes:
        data = pcm16(samples)
        if self._whole:
            self._held += data
            return b""
        if self._begun:
            return data
        self._begun = True
        return self._header(None) + data

    def finish(self) -> bytes:
        if self._whole:
            return self._header(len(self._held)) + bytes(self._held)
        return b"" if self._begun else self._header(None)

    def close(self) -> None:
        self._held.clear()

    def _header(self, size: int | None) -> bytes:
        rate, sample_bytes = self._sample_rate, 2
        return struct.pack(
            "<4sI4s4sIHHIIHH4sI",
            b"RIFF",
            _UNKNOWN_SIZE if size is None else size + 36,
            b"WAVE",
            b"fmt ",
            16,
            1,  # PCM
            1,  # channel
            rate,
            rate * sample_bytes,
            sample_bytes,
            8 * sample_bytes,
            b"data",
            _UNKNOWN_SIZE if size is None else size,
        )


class _Pipe:
    """What the muxer of a streamed file writes to: no seeking, bytes are taken as they come."""

    def __init__(self) -> None:
        self._ready = bytearray()

    def write(self, data: bytes) -> int:
        self._ready += data
        return len(data)

    def take(self) -> bytes:
        ready = bytes(self._ready)
        self._ready.clear()
        return ready


class ContainerEncoder:
    """MP3, Ogg/Opus, ADTS/AAC or FLAC through FFmpeg: one codec and one muxer for the stream."""

    def __init__(self, audio_format: AudioFormat, sample_rate: int, whole: bool = False) -> None:
        self._sample_rate = sample_rate
        self._encoded = 0
        self._using = threading.Lock()  # the codec: a cancelled call goes on in its thread
        self._pipe = None if whole else _Pipe()
        self._file = io.BytesIO()
        options = {} if whole else dict(audio_format.streamed_options)
        self._container = av.open(
            self._pipe or self._file, "w", format=audio_format.muxer, options=options
        )
        stream = self._container.add_stream(audio_format.codec, rate=sample_rate, layout="mono")
        self._stream = cast(av.AudioStream, stream)
        if audio_format.bit_rate is not None:
            self._stream.bit_rate = audio_format.bit_rate
        self._container.start_encoding()

    def encode(self, samples: Samples) -> bytes:
        values = np.frombuffer(pcm16(samples), "<i2")
        with self._using:
            for begin in range(0, len(values), _PIECE):
                piece = values[begin : begin + _PIECE]
                frame = av.AudioFrame.from_ndarray(piece[np.newaxis], format="s16", layout="mono")
                frame.sample_rate = self._sample_rate
                frame.pts = self._encoded
                self._encoded += len(piece)
                self._container.mux(self._stream.encode(frame))
            return self._pipe.take() if self._pipe else b""

    def finish(self) -> bytes:
        with self._using:
            self._container.mux(self._stream.encode(None))
            self._container.close()
            return self._pipe.take() if self._pipe else self._file.getvalue()

    def close(self) -> None:
        # The garbage collector would do it as well, but too late: it does not see FFmpeg's buffers.
        with self._using:
            self._container.close()
