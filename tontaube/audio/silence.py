"""Samples → the same samples without the silence before the first speech, as they arrive.

The onset is the first of several consecutive short windows that are loud; a short pad before it is
kept. Pauses after it are left alone.
"""

from __future__ import annotations

import numpy as np

from tontaube.types import Samples

_WINDOW_SECONDS = 0.010
_SUSTAINED_WINDOWS = 4  # a click is shorter
_THRESHOLD = 10 ** (-48 / 20)  # RMS; breath and codec noise lie below it
_PAD_SECONDS = 0.060
_LONGEST_SECONDS = 5.0  # whoever is silent for longer may mean it


class LeadingSilence:
    """Holds samples back until the onset is certain; what it returns does not depend on how the
    input was cut. Memory is bounded by a few seconds."""

    def __init__(self, sample_rate: int = 24_000, *, enabled: bool = True) -> None:
        self._window = round(_WINDOW_SECONDS * sample_rate)
        self._pad = round(_PAD_SECONDS * sample_rate)
        self._longest = round(_LONGEST_SECONDS * sample_rate)
        self._open = not enabled
        self._held: Samples = np.zeros(0, np.float32)
        self.trimmed = 0
        """Samples left out so far."""

    def push(self, samples: Samples) -> Samples:
        """The next samples in, those that belong to the speech out (none before the onset)."""
        if self._open:
            return samples
        self._held = np.concatenate((self._held, samples))
        onset = self._onset()
        if onset is None:
            if len(self._held) <= self._longest:
                return np.zeros(0, np.float32)
            onset = self._pad  # give up looking: nothing is left out
        return self._release(max(0, onset - self._pad))

    def finish(self) -> Samples:
        """The rest: without any onset everything, for it may be very quiet speech."""
        return np.zeros(0, np.float32) if self._open else self._release(0)

    def _release(self, start: int) -> Samples:
        self._open = True
        self.trimmed = start
        held, self._held = self._held, np.zeros(0, np.float32)
        return held[start:]

    def _onset(self) -> int | None:
        """The first sample of the sustained loud part, within what counts as leading."""
        count = min(len(self._held), self._longest) // self._window
        if count < _SUSTAINED_WINDOWS:
            return None
        windows = self._held[: count * self._window].reshape(count, self._window)
        loud = np.square(windows).mean(axis=1) > _THRESHOLD**2
        runs = np.convolve(loud, np.ones(_SUSTAINED_WINDOWS), "valid") == _SUSTAINED_WINDOWS
        first = int(np.argmax(runs))
        return first * self._window if runs[first] else None
