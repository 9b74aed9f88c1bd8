"""Samples → samples spoken faster or slower at the same pitch, as they arrive.

Waveform-similarity overlap-add (Verhelst and Roelands, 1993): windows are read at ``speed`` times
the rate at which they are written, each shifted a little to where it continues the previous one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tontaube.errors import InvalidRequest
from tontaube.types import Samples

_HOP_SECONDS = 0.020  # half a window: two periods of a low voice
_SEARCH_SECONDS = 0.010  # to each side; the sum spans the longest pitch period
_SLOWEST, _FASTEST = 0.25, 4.0


class Tempo:
    """One stream's time-stretch; what it returns does not depend on how the input was cut.

    ``push`` returns what is certain so far (about 50 ms of input are held back), ``finish`` the
    rest; together ``round(n / speed)`` samples for ``n`` pushed ones. Speed 1 passes through.
    Raises InvalidRequest for a speed outside 0.25..4.
    """

    def __init__(self, speed: float, sample_rate: int = 24_000) -> None:
        if not _SLOWEST <= speed <= _FASTEST:
            raise InvalidRequest(f"speed must be between {_SLOWEST} and {_FASTEST}", "speed")
        self._speed = speed
        self._hop = round(_HOP_SECONDS * sample_rate)
        self._search = round(_SEARCH_SECONDS * sample_rate)
        phase = (np.arange(self._hop, dtype=np.float32) + np.float32(0.5)) / np.float32(self._hop)
        self._fade_in = np.sin(phase * np.float32(np.pi / 2)) ** 2  # with its mirror it sums to 1
        self._input: Samples = np.zeros(0, np.float32)
        self._origin = 0  # where _input[0] lies in everything pushed
        self._received = 0
        self._returned = 0
        self._window = 0  # number of the next window
        self._previous = 0  # where the last window was read
        self._tail: Samples = np.zeros(0, np.float32)  # its second half, to be faded out

    def push(self, samples: Samples) -> Samples:
        """The next samples in, those that are certain out (possibly none)."""
        if self._speed == 1.0:
            return samples
        self._received += len(samples)
        self._input = np.concatenate([self._input, samples.astype(np.float32, copy=False)])
        written: list[Samples] = []
        while self._needed() <= self._origin + len(self._input):
            written.append(self._write_window())
        return self._give(written)

    def finish(self) -> Samples:
        """The rest. The stream is over; nothing may be pushed afterwards."""
        if self._speed == 1.0:
            return np.zeros(0, np.float32)
        total = round(self._received / self._speed)
        written: list[Samples] = []
        missing = total - self._returned
        while missing > 0:
            short = self._needed() - self._origin - len(self._input)
            if short > 0:  # silence follows the end
                self._input = np.concatenate([self._input, np.zeros(short, np.float32)])
            written.append(self._write_window())
            missing -= self._hop
        return self._give(written)[: len(written) * self._hop + min(missing, 0)]

    def _nominal(self) -> int:
        return round(self._window * self._hop * self._speed)

    def _needed(self) -> int:
        """How much input, counted from the stream's start, must be there for the next window: what
        it looks at, and, at high speeds, as much as the output with it stands for."""
        continued = self._previous + self._hop
        looked_at = max(continued, self._nominal() + self._search) + 2 * self._hop
        return max(looked_at, math.ceil((self._window + 1) * self._hop * self._speed))

    def _write_window(self) -> Samples:
        hop = self._hop
        if self._window == 0:
            start = 0
            written = self._read(0, hop)  # the first one is not faded in
        else:
            start = self._best_start()
            fading = self._tail * self._fade_in[::-1]
            written = fading + self._read(start, hop) * self._fade_in
        self._tail = self._read(start + hop, hop)
        self._previous = start
        self._window += 1
        self._forget(min(start + hop, self._nominal() - self._search))
        return written

    def _best_start(self) -> int:
        """Where near its nominal place the next window continues the previous one best."""
        length = 2 * self._hop
        wanted = self._read(self._previous + self._hop, length)
        first = max(self._nominal() - self._search, self._origin)
        searched = self._read(first, self._nominal() + self._search - first + length)
        likeness = np.correlate(searched, wanted, "valid")  # [candidates]
        return first + int(np.argmax(likeness / _norms(searched, length)))

    def _read(self, start: int, length: int) -> Samples:
        begin = start - self._origin
        return self._input[begin : begin + length]

    def _forget(self, before: int) -> None:
        if before > self._origin:
            self._input = self._input[before - self._origin :].copy()
            self._origin = before

    def _give(self, written: list[Samples]) -> Samples:
        given = np.concatenate(written) if written else np.zeros(0, np.float32)
        self._returned += len(given)
        return given


def _norms(samples: Samples, length: int) -> npt.NDArray[np.float64]:
    """The norm of every window of ``length`` samples; silence counts as a little noise."""
    energy = np.concatenate([[0.0], np.cumsum(np.square(samples, dtype=np.float64))])
    inside = np.maximum(energy[length:] - energy[:-length], 0.0)
    norms: npt.NDArray[np.float64] = np.sqrt(inside + 1e-6)
    return norms
