"""What a module's steps cost: the last few, in fixed memory, readable from any thread."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

_WINDOW = 512  # steps that statistics look back on

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """What can be seen of a module: sequences waiting and running, and its last steps."""

    name: str
    waiting: int
    running: int
    steps: int
    step_seconds: float  # median
    step_seconds_p99: float
    batch: float  # mean
    busy_seconds: float  # since the start


@dataclass(slots=True)
class Steps:
    """The last steps' durations, batch sizes and frames; fixed memory, readable from any thread."""

    count: int = 0
    busy: float = 0.0
    typical: float = 0.0  # seconds of a step, a running mean
    _seconds: Values = field(default_factory=lambda: np.zeros(_WINDOW))
    _batches: Values = field(default_factory=lambda: np.zeros(_WINDOW))

    def record(self, seconds: float, batch: int) -> None:
        """Note one step of ``batch`` sequences."""
        slot = self.count % _WINDOW
        self._seconds[slot] = seconds
        self._batches[slot] = batch
        self.typical += (seconds - self.typical) * (0.05 if self.count else 1.0)
        self.count += 1
        self.busy += seconds

    def quantile(self, q: float, last: int = _WINDOW) -> float:
        """Of the step time over the ``last`` steps; 0 before the first."""
        chosen = self._recent(self._seconds, last)
        return float(np.quantile(chosen, q)) if chosen.size else 0.0

    def mean_batch(self) -> float:
        """Sequences a step; 0 before the first."""
        chosen = self._recent(self._batches, _WINDOW)
        return float(chosen.mean()) if chosen.size else 0.0

    def _recent(self, values: Values, last: int) -> Values:
        count = min(self.count, last, _WINDOW)
        return values[(self.count - 1 - np.arange(count)) % _WINDOW]

    def status(self, name: str, waiting: int, running: int) -> LaneStatus:
        """With what only its lane knows."""
        return LaneStatus(
            name=name,
            waiting=waiting,
            running=running,
            steps=self.count,
            step_seconds=self.quantile(0.5),
            step_seconds_p99=self.quantile(0.99),
            batch=self.mean_batch(),
            busy_seconds=self.busy,
        )
