"""The seam between scheduling and the four models: what a stage module promises."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tontaube.types import StageJob, StageOutput


class StageModule(Protocol):
    """One stage (CB0..CB3), stepped by the scheduler's thread; every step is one batch."""

    def add(self, job: StageJob) -> None:
        """Admit a job; it takes part from the next step on.

        Raises InvalidRequest if it can never fit.
        """

    def step(self) -> list[StageOutput]:
        """Advance every running job by at least one code (or a piece of its prefill)."""

    def abort(self, job_id: str) -> None:
        """Forget a job at once, free its memory; unknown ids are ignored."""

    @property
    def running(self) -> int:
        """Jobs added and not yet finished or aborted."""


@runtime_checkable
class ClosableStage(StageModule, Protocol):
    """One that holds more than Python's own memory."""

    def close(self) -> None:
        """Give it back; the stage makes no step any more."""
