"""Who may speak now, who waits, who is sent away: a bounded number of streams and a bounded room.

Safe to use from any thread; it starts streams by a callback and knows nothing of what they do.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tontaube.errors import Busy

_FRAME_SECONDS = 0.080  # every playing stream needs one frame of each stage in this time
_MARGIN = 0.15
_FOLLOW = 0.2  # of the way to the newest estimate


class Ticket(Protocol):
    """One request's place; hashable by identity."""

    def start(self) -> None:
        """Called once, when its turn comes; must not block."""


@dataclass(slots=True)
class StreamLimit:
    """The largest number of streams whose frames are all ready in time, found while running.

    One *round* advances every playing stream by a frame. The number whose rounds fit the frame
    budget with margin is estimated again and again; the limit follows a running mean of that, by
    one stream at a time, so that it neither swings nor depends on where it began.
    """

    maximum: int
    value: int
    adjust: bool = True
    _fitting: float | None = None  # streams, a running mean

    def observe(self, round_seconds: Callable[[int], float], playing: int) -> None:
        """``round_seconds`` says what a round with a number of streams takes, by what was measured
        with ``playing`` of them; call every few seconds of work."""
        if not self.adjust or playing < 1:
            return
        budget = _FRAME_SECONDS * (1 - _MARGIN)
        fitting = bisect_right(range(1, self.maximum + 1), budget, key=round_seconds)
        before = self.value if self._fitting is None else self._fitting
        self._fitting = before + _FOLLOW * (fitting - before)
        if self._fitting < self.value - 0.25 and playing >= self.value:
            self.value = max(1, self.value - 1)
        elif self._fitting > self.value + 0.75 and playing >= self.value - 1:
            # A limit that is not reached cannot be judged; it rises only next to what was seen.
            self.value = min(self.maximum, self.value + 1)


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
