"""Which work comes next: each stream's playback clock and the order it gives to the stream's work.

It knows moments and seconds of audio only: no model, no thread, no queue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

TOGETHER = 1
"""From this level on it matters less whose work is done first than how much is done at once: the
module with the most work of the most urgent level comes next, not the one with the oldest."""


class Urgency(NamedTuple):
    """Smaller is more urgent: by level, then by moment."""

    level: int
    moment: float


@dataclass(slots=True)
class Playback:
    """What the server knows of one stream's listener: playing starts with the first emission and
    pauses while there is nothing to play. Times are the scheduler's clock, in seconds."""

    arrival: float  # in the modules: what waited before is not urgent for having waited
    emitted: float = 0.0  # seconds of audio
    origin: float | None = None  # when second 0 was played, later by every pause since
    first_emission: float | None = None

    def emit(self, now: float, seconds: float) -> bool:
        """Note that ``seconds`` of audio left the server at ``now``; True if the listener had run
        dry before."""
        dry = False
        if self.origin is None:
            self.origin = self.first_emission = now
        elif now > self.origin + self.emitted:
            dry = True
            self.origin = now - self.emitted
        self.emitted += seconds
        return dry

    def buffered(self, now: float) -> float:
        """Seconds of audio the listener still has to play."""
        return 0.0 if self.origin is None else max(0.0, self.origin + self.emitted - now)


Policy = Callable[[Playback, float, float], Urgency]
"""``(playback, at, heard)`` → urgency of work for the audio that starts ``at`` seconds into the
stream; ``heard``: the moment at which that could be heard if nothing else were done first."""


@dataclass(frozen=True, slots=True)
class ByDeadline:
    """Streams without audio first, oldest first; then by the moment the listener runs dry.

    Only two things go before a new stream: a listener who would soon run dry if his work were put
    off, and a stream that has waited for its first audio for too long. As every emission moves its
    stream's deadline into the future, nothing waits for ever. Those who need it at once, and can
    still be helped, go one by one, the earliest deadline first. All other work is done TOGETHER:
    newcomers that come close after each other share their steps, as first pieces made one by one
    would take most of the machine at high rates; whoever has time left waits for company; and
    where more listeners are late than can be helped, the shortest way out is to do as much at once
    as possible.
    """

    reserve: float = 0.75  # seconds by which work should be done before its listener runs dry
    hurry: float = 0.2  # seconds before that moment from which on nobody else is waited for
    patience: float = 3.0  # for first audio

    def __call__(self, playback: Playback, at: float, heard: float) -> Urgency:
        started = playback.origin is not None
        origin = playback.arrival + self.patience if playback.origin is None else playback.origin
        deadline = origin + at
        left = deadline - heard
        if 0.0 <= left < self.hurry:
            return Urgency(0, deadline)
        if left < self.reserve:
            return Urgency(TOGETHER, deadline)
        if not started and at <= 0.0:
            return Urgency(TOGETHER + 1, playback.arrival)
        return Urgency(TOGETHER + 2, deadline)


def first_come_first_served(playback: Playback, at: float, heard: float) -> Urgency:
    """The order of arrival, whatever the listeners have: for comparison."""
    return Urgency(0, playback.arrival)


def two_levels(playback: Playback, at: float, heard: float) -> Urgency:
    """Streams without audio before streams with some, each by arrival: for comparison."""
    return Urgency(0 if playback.origin is None else 1, playback.arrival)
