"""The scheduler's view of one module: the work waiting for it, the work in it, what its steps cost.

A lane belongs to the scheduler's thread. It knows urgency and stage modules, no streams' contents.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from tontaube.backend.base import StageModule
from tontaube.errors import TontaubeError
from tontaube.scheduling.steps import LaneStatus, Steps
from tontaube.scheduling.urgency import Playback, Urgency
from tontaube.stages.ports import Decoder
from tontaube.types import Codes, Samples, StageJob, StageOutput

T = TypeVar("T")

_COMPANY = 64  # frames of a codec step: longer calls gain little from company and hold others up


class Work:
    """Something a stream wants from a module, to make the audio ``at`` seconds into the stream."""

    __slots__ = ("at", "playback")

    def __init__(self, playback: Playback, at: float) -> None:
        self.playback = playback
        self.at = at

    @property
    def left(self) -> int:
        """Steps of its module until somebody goes on with what it gives."""
        return 1

    @property
    def span(self) -> int:
        """Steps of each later stage that will then be needed."""
        return 0


Rank = Callable[[Work], Urgency]


class StageRun(Work):
    """A job of a stage and the codes it has given so far; one coroutine waits on it."""

    __slots__ = ("_begun", "_lane", "_over", "_wanted", "_woken", "codes", "error", "finish", "job")

    def __init__(self, lane: StageLane, job: StageJob, playback: Playback, at: float) -> None:
        super().__init__(playback, at)
        self.job = job
        self.codes: list[int] = []
        self.finish: str | None = None
        self.error: Exception | None = None
        self._lane = lane
        self._over: Callable[[StageRun], None] | None = None
        self._wanted: int | None = None
        self._begun = 0  # codes there were when the waiting began
        self._woken: asyncio.Future[None] | None = None

    async def until(self, count: int | None = None) -> bool:
        """Wait for ``count`` codes, or the end; True if the job has ended. Raises its error."""
        if not self._satisfied(count):
            self._wanted, self._begun = count, len(self.codes)
            self._woken = asyncio.get_running_loop().create_future()
            try:
                await self._woken
            finally:
                self._woken = None
        if self.error is not None:
            raise self.error
        return self.finish is not None

    @property
    def left(self) -> int:
        return (self._wanted or self.job.max_codes) - len(self.codes)

    @property
    def span(self) -> int:
        return (self._wanted or self.job.max_codes) - self._begun

    def _satisfied(self, count: int | None) -> bool:
        if self.finish is not None or self.error is not None:
            return True
        return count is not None and len(self.codes) >= count

    def deliver(self, output: StageOutput) -> None:
        """What one step gave; called by the lane."""
        self.codes.extend(output.codes)
        self.finish = output.finish
        if self.finish is not None:
            self._notify()
        self._wake()

    def fail(self, error: Exception) -> None:
        """The job cannot go on; called by the lane or the scheduler."""
        self.error = error
        self._notify()
        self._wake()

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done() and self._satisfied(self._wanted):
            self._woken.set_result(None)

    def close(self) -> None:
        """Forget the job wherever it is, at once; harmless after its end."""
        self._lane.remove(self)
        self._notify()

    def when_over(self, callback: Callable[[StageRun], None]) -> None:
        """Have ``callback`` called once, at the end of the job, whatever ends it."""
        self._over = callback

    def _notify(self) -> None:
        callback, self._over = self._over, None
        if callback is not None:
            callback(self)


class Call(Work):
    """Codec work to be done in the scheduler's thread, and its result: codes of a stream (None: its
    end), or a function of its own."""

    __slots__ = ("codes", "future", "run")

    def __init__(
        self,
        run: Decoder | Callable[[], Any],
        codes: Codes | None,
        playback: Playback,
        at: float,
    ) -> None:
        super().__init__(playback, at)
        self.run = run
        self.codes = codes
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


DecodeTogether = Callable[[Sequence[tuple[Any, Codes | None]]], list[Samples]]
"""``(decoder, codes or None)`` of several streams → what each decoder's ``push`` or ``finish``
gives; all decoders come from the same machinery."""


def one_by_one(works: Sequence[tuple[Decoder, Codes | None]]) -> list[Samples]:
    """For decoders that gain nothing from company."""
    return [decoder.finish() if codes is None else decoder.push(codes) for decoder, codes in works]


class Lane(Protocol):
    """What the scheduler needs of a module."""

    name: str
    steps: Steps

    def urgencies(self, rank: Rank) -> list[Urgency]:
        """Of all its work."""

    def crowd(self, count: int) -> float:
        """How many of ``count`` pieces of work one step advances; infinite where steps do not get
        cheaper together, so that there is no reason to wait for more of them."""

    def step(self, rank: Rank) -> int:
        """Do a step of the most urgent work and of all that fits beside it; the batch size."""

    def fail(self, error: Exception) -> None:
        """Give all work up; whoever waits for it gets the error."""

    def status(self) -> LaneStatus:
        """Readable from any thread."""


class StageLane:
    """One stage: jobs enter the module in the order of their urgency while there is room."""

    def __init__(self, name: str, module: StageModule, max_batch: int) -> None:
        self.name = name
        self.steps = Steps()
        self._module = module
        self._max_batch = max_batch
        self._waiting: dict[str, StageRun] = {}
        self._running: dict[str, StageRun] = {}

    def add(self, job: StageJob, playback: Playback, at: float) -> StageRun:
        """Queue a job; its codes arrive in the run that is returned."""
        run = StageRun(self, job, playback, at)
        self._waiting[job.id] = run
        return run

    def remove(self, run: StageRun) -> None:
        """Forget a run; its place in the module is free before the next step."""
        job_id = run.job.id
        if self._running.get(job_id) is run:
            del self._running[job_id]
            self._module.abort(job_id)
        elif self._waiting.get(job_id) is run:
            del self._waiting[job_id]

    def urgencies(self, rank: Rank) -> list[Urgency]:
        return [rank(run) for runs in (self._waiting, self._running) for run in runs.values()]

    def crowd(self, count: int) -> float:
        return min(self._max_batch, count)

    def step(self, rank: Rank) -> int:
        self._admit(rank)
        batch = self._module.running
        for output in self._module.step():
            run = self._running.get(output.job_id)
            if run is None:
                continue
            if output.finish is not None:
                del self._running[output.job_id]
            run.deliver(output)
        return batch

    def _admit(self, rank: Rank) -> None:
        room = self._max_batch - len(self._running)
        if room <= 0 or not self._waiting:
            return
        for run in sorted(self._waiting.values(), key=rank)[:room]:
            del self._waiting[run.job.id]
            try:
                self._module.add(replace(run.job, priority=_as_number(rank(run))))
            except TontaubeError as error:  # it can never fit: only its stream suffers
                run.fail(error)
            else:
                self._running[run.job.id] = run

    def fail(self, error: Exception) -> None:
        for run in [*self._waiting.values(), *self._running.values()]:
            run.fail(error)
        for job_id in self._running:
            with contextlib.suppress(Exception):  # the module may be what is broken
                self._module.abort(job_id)
        self._waiting.clear()
        self._running.clear()

    def status(self) -> LaneStatus:
        return self.steps.status(self.name, len(self._waiting), self._module.running)


def _as_number(urgency: Urgency) -> float:
    """For modules that order their own queue."""
    return urgency.level * 1e6 + urgency.moment


class CodecLane:
    """The codec: the most urgent call at each step, and others beside it as long as that makes each
    of them cheaper."""

    def __init__(self, name: str, decode: DecodeTogether) -> None:
        self.name = name
        self.steps = Steps()
        self._decode = decode
        self._waiting: list[Call] = []

    async def call(self, run: Callable[[], T], playback: Playback, at: float) -> T:
        """Queue a function and wait for its result; cancelling takes it back."""
        result: T = await self._result(Call(run, None, playback, at))
        return result

    async def decode(
        self, decoder: Decoder, codes: Codes | None, playback: Playback, at: float
    ) -> Samples:
        """Queue codes, or a stream's end, and wait for the samples; cancelling takes it back."""
        samples: Samples = await self._result(Call(decoder, codes, playback, at))
        return samples

    async def _result(self, call: Call) -> Any:
        self._waiting.append(call)
        try:
            return await call.future
        finally:
            if call in self._waiting:
                self._waiting.remove(call)

    def drop(self, playback: Playback) -> None:
        """Take back every call of one stream."""
        for call in [call for call in self._waiting if call.playback is playback]:
            self._waiting.remove(call)
            call.future.cancel()

    def urgencies(self, rank: Rank) -> list[Urgency]:
        return [rank(call) for call in self._waiting]

    def crowd(self, count: int) -> float:
        return math.inf if count else 0.0

    def step(self, rank: Rank) -> int:
        calls = self._company(sorted(self._waiting, key=rank))
        for call in calls:
            self._waiting.remove(call)
        try:
            results = self._run(calls)
        except Exception as error:  # of the calls made together, whose state is in their decoders
            for call in calls:
                if not call.future.done():
                    call.future.set_exception(error)
        else:
            for call, result in zip(calls, results, strict=True):
                if not call.future.done():
                    call.future.set_result(result)
        return len(calls)

    def _company(self, calls: list[Call]) -> list[Call]:
        """The first, and those after it that keep the step short."""
        if callable(calls[0].run):
            return calls[:1]
        company, frames = [calls[0]], _frames(calls[0])
        for call in calls[1:]:
            frames += _frames(call)
            if frames > _COMPANY:
                break
            if not callable(call.run):
                company.append(call)
        return company

    def _run(self, calls: list[Call]) -> list[Any]:
        first = calls[0].run
        if callable(first):
            return [first()]
        return self._decode([(call.run, call.codes) for call in calls])

    def fail(self, error: Exception) -> None:
        for call in self._waiting:
            if not call.future.done():
                call.future.set_exception(error)
        self._waiting.clear()

    def status(self) -> LaneStatus:
        return self.steps.status(self.name, len(self._waiting), 0)


def _frames(call: Call) -> int:
    return 0 if call.codes is None else call.codes.shape[1]
