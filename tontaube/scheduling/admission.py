"""Who may speak now, who waits, who is sent away: a bounded number of streams and a bounded room.

Safe to use from any thread; it starts streams by a callback and knows nothing of what they do.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tontaube.errors import Busy

_MARGIN = 0.15
_P99 = 2.33  # standard errors
_JUDGED = 4  # windows of work from which the limit may be judged
_REMEMBERED = 16  # windows at most
_LONGEST_WAIT = 256  # windows before a limit that was too high is tried again


class Ticket(Protocol):
    """One request's place; hashable by identity."""

    def start(self) -> None:
        """Called once, when its turn comes; must not block."""


@dataclass(slots=True)
class StreamLimit:
    """The largest number of streams that are all spoken in time, found while running.

    A second of audio costs so many seconds of work, less the more streams share their steps; what
    more streams would cost is not known before they play. So the limit is judged by what it costs
    when it is reached. Where so many streams leave no margin of a second, it falls; where they do,
    at the 99th percentile of what the mean may be, one more is tried after a while, and after twice
    that while where the last try had failed, so that it settles.
    """

    maximum: int
    value: int
    adjust: bool = True
    _costs: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _windows: int = 0  # since the last change
    _wait: int = _JUDGED  # windows until one more is tried
    _risen: bool = False  # the last change was one up

    def observe(self, cost: float, playing: int) -> None:
        """``cost``: seconds of work for a second of audio, over a window of a few seconds in which
        ``playing`` streams were spoken."""
        if not self.adjust or playing < self.value:  # a limit that is not reached cannot be judged
            return
        self._costs.append(cost)
        self._windows += 1
        if self._windows < _JUDGED:
            return
        mean = float(np.mean(self._costs))
        error = float(np.std(self._costs)) / math.sqrt(len(self._costs))
        fitting = (1 - _MARGIN) / mean
        if fitting < self.value:
            if self._risen:  # a try that failed, at once or after a while
                self._wait = min(2 * self._wait, _LONGEST_WAIT)
            fallen = min(max(int(fitting), self.value * 3 // 4), self.value - 1)
            self._change(max(1, fallen), risen=False)
        elif self._windows >= self._wait and self.value < self.maximum:
            if self.value * (mean + _P99 * error) < 1 - _MARGIN:
                if self._risen:  # one that did not
                    self._wait = max(self._wait // 2, _JUDGED)
                self._change(self.value + 1, risen=True)

    def _change(self, value: int, *, risen: bool) -> None:
        self.value, self._risen = value, risen
        self._costs.clear()
        self._windows = 0


class Admission:
    """The one door: at most ``limit.value`` streams inside, at most ``room`` waiting, in order."""

    def __init__(
        self, limit: StreamLimit, room: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = limit
        self._room = room
        self._clock = clock
        self._lock = threading.Lock()
        self._inside: dict[Ticket, float] = {}  # and when it came in
        self._waiting: deque[Ticket] = deque()
        self._mean_stay = 1.0  # seconds, a running mean

    @property
    def active(self) -> int:
        """Streams inside."""
        return len(self._inside)

    @property
    def waiting(self) -> int:
        """Requests in the waiting room."""
        return len(self._waiting)

    def position(self, ticket: Ticket) -> int:
        """Requests before this one, itself included; 0 when it does not wait."""
        with self._lock:
            return self._waiting.index(ticket) + 1 if ticket in self._waiting else 0

    def enter(self, ticket: Ticket) -> None:
        """Start the ticket now or let it wait. Raises Busy when the waiting room is full."""
        with self._lock:
            if len(self._inside) < self.limit.value and not self._waiting:
                self._inside[ticket] = self._clock()
            elif len(self._waiting) < self._room:
                self._waiting.append(ticket)
                return
            else:
                raise Busy("all places are taken, try again later", self._retry_after())
        ticket.start()

    def withdraw(self, ticket: Ticket) -> bool:
        """Take a waiting ticket out of the room; False if it does not wait (any more)."""
        with self._lock:
            if ticket not in self._waiting:
                return False
            self._waiting.remove(ticket)
            return True

    def leave(self, ticket: Ticket) -> None:
        """Give a place inside up, and let the next ones in."""
        with self._lock:
            entered = self._inside.pop(ticket, None)
            if entered is not None:
                self._mean_stay += 0.1 * (self._clock() - entered - self._mean_stay)
        self.refresh()

    def _let_in(self) -> list[Ticket]:
        started = []
        while self._waiting and len(self._inside) < self.limit.value:
            ticket = self._waiting.popleft()
            self._inside[ticket] = self._clock()
            started.append(ticket)
        return started

    def refresh(self) -> None:
        """Let in those who fit, after a place became free or the limit rose."""
        with self._lock:
            started = self._let_in()
        for ticket in started:
            ticket.start()

    def _retry_after(self) -> float:
        return max(1.0, round(self._mean_stay * (len(self._waiting) + 1) / self.limit.value))
