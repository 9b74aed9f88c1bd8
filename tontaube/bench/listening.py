"""Moments at which audio arrived → what its listener went through. Pure; times are in seconds.

An ``Arrival`` is when a piece arrived and how long it plays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

PERCENTILES = (50, 95, 99)


class Arrival(NamedTuple):
    """A piece of audio."""

    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Dryness:
    """How often a listener had nothing to play, and for how long in all."""

    underruns: int
    seconds: float


def dryness(arrivals: Sequence[Arrival], client_buffer: float = 0.0) -> Dryness:
    """What a player does that starts when ``client_buffer`` seconds are there (or everything is),
    and that goes on with the next piece after it ran dry."""
    count, dry, received = 0, 0.0, 0.0
    dry_at: float | None = None  # when all that arrived has been played; None: not started
    total = sum(piece.seconds for piece in arrivals)
    for at, seconds in arrivals:
        if dry_at is not None:
            if at > dry_at:
                count += 1
                dry += at - dry_at
                dry_at = at
            dry_at += seconds
        received += seconds
        if dry_at is None and received >= min(client_buffer, total):
            dry_at = at + received
    return Dryness(count, dry)


def window_rtfs(arrivals: Sequence[Arrival], window: float) -> list[float]:
    """Seconds it took per second of audio, over the last ``window`` seconds of audio or a little
    more, at every piece but the first, whose wait is what TTFA measures."""
    ratios = []
    first, audio = 1, 0.0
    for last in range(1, len(arrivals)):
        audio += arrivals[last].seconds
        while first < last and audio - arrivals[first].seconds >= window:
            audio -= arrivals[first].seconds
            first += 1
        if audio > 0:
            ratios.append((arrivals[last].at - arrivals[first - 1].at) / audio)
    return ratios


def merged(arrivals: Sequence[Arrival], within: float) -> list[Arrival]:
    """Pieces that arrived at most ``within`` seconds after the one before, as one with it: what a
    server sent at once may arrive in several."""
    together: list[Arrival] = []
    last = -float("inf")
    for at, seconds in arrivals:
        if at - last <= within:
            first = together[-1]
            together[-1] = Arrival(first.at, first.seconds + seconds)
        else:
            together.append(Arrival(at, seconds))
        last = at
    return together


def gaps(arrivals: Sequence[Arrival]) -> list[float]:
    """Between a piece and the next."""
    return [later.at - earlier.at for earlier, later in pairwise(arrivals)]


def onset(samples: npt.NDArray[np.int16], threshold: int) -> int | None:
    """The first sample louder than ``threshold``; None if there is none."""
    loud = np.abs(samples.astype(np.int32)) > threshold
    return int(loud.argmax()) if loud.any() else None


def percentiles(values: Sequence[float]) -> dict[str, float] | None:
    """``{"p50": …, "p95": …, "p99": …}``; None of nothing."""
    if not values:
        return None
    found = np.percentile(values, PERCENTILES)
    return {f"p{q}": float(value) for q, value in zip(PERCENTILES, found, strict=True)}
