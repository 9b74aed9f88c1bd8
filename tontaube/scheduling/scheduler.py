"""All model work, a step at a time: each turn the module with the most urgent work steps once.

The scheduler lives in one event loop (in production the worker thread's), as do the coroutines of
the streams it serves, so nothing here needs a lock. It knows no text and no codes' meaning.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tontaube.backend.base import StageModule
from tontaube.errors import Unavailable
from tontaube.scheduling.admission import Admission
from tontaube.scheduling.lanes import (
    CodecLane,
    DecodeTogether,
    Lane,
    Rank,
    StageLane,
    Work,
    one_by_one,
)
from tontaube.scheduling.outbox import Outbox
from tontaube.scheduling.session import Limits, Modules, Session, Submission
from tontaube.scheduling.steps import LaneStatus
from tontaube.scheduling.urgency import TOGETHER, ByDeadline, Playback, Policy, Urgency

log = logging.getLogger(__name__)
T = TypeVar("T")

_SETTLE_ROUNDS = 3  # a step wakes a coroutine, which wakes another, which adds the next job
_WINDOW_SECONDS = 2.0  # of audio of each stream between two looks at how many should play at once
_STAY = 4  # times as much work must wait elsewhere before a module is left with work in it: who is
# at the same place of a piece then stays together, through all modules


@dataclass(frozen=True, slots=True)
class _Observed:
    """Where the last look at the cost of audio ended: seconds emitted, seconds of work, streams."""

    audio: float = 0.0
    busy: float = 0.0
    playing: int = 0


class Scheduler:
    """Five lanes and the choice between them. ``turn`` is one step, ``run`` turns until ``stop``.

    All methods but ``submit`` and ``status`` are for the scheduler's own loop, in which it must be
    made.
    """

    def __init__(
        self,
        modules: Sequence[StageModule],
        admission: Admission,
        limits: Limits | None = None,
        *,
        decode: DecodeTogether = one_by_one,
        policy: Policy | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``modules``: CB0..CB3; ``decode``: the codec. ``clock`` gives seconds; a simulation
        passes its own."""
        limits = limits or Limits()
        stages = [
            StageLane(f"cb{stage}", module, limits.max_batch)
            for stage, module in enumerate(modules)
        ]
        self.admission = admission
        self.modules = Modules(stages, CodecLane("codec", decode), limits, clock)
        self._lanes: tuple[Lane, ...] = (*stages, self.modules.codec)
        self._policy = policy or ByDeadline()
        self._loop = asyncio.get_running_loop()
        self._lane: Lane | None = None  # that made the last step
        self._observed = _Observed()
        self._stopping = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where the scheduler and its streams' coroutines run."""
        return self._loop

    def submit(
        self, work: Callable[[Session], Awaitable[None]], outbox: Outbox, sample_rate: int
    ) -> Submission:
        """Have ``work`` done when its turn comes. Callable from any thread. Raises Busy when the
        waiting room is full, Unavailable when no step can be made any more."""
        if self.modules.failure is not None:
            raise self.modules.failure
        session = Session(self.modules, outbox, sample_rate)
        return Submission(session, work, self.admission, self._loop)

    async def compute(self, function: Callable[[], T]) -> T:
        """Have codec work that belongs to no stream done, as urgent as a new stream's. Callable
        from any loop."""

        async def call() -> T:
            self.modules.work_added.set()
            return await self.modules.codec.call(function, Playback(self.modules.clock()), 0.0)

        if self.modules.failure is not None:
            raise self.modules.failure
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))

    def turn(self) -> bool:
        """One step of the lane with the most urgent work; False if there is no work. Never raises:
        an exception in a step fails every stream and stays in ``modules.failure``."""
        start = self.modules.clock()

        lane: Lane | None = None
        try:
            ranks = self._ranks(start)
            lane = self._next_lane(ranks)
            if lane is None:
                return False
            batch = lane.step(ranks[lane.name])
        except Exception as error:
            name = lane.name if lane is not None else "the scheduler"
            log.exception("a step of %s failed", name)
            self._fail(f"the model worker stopped: {name}: {type(error).__name__}: {error}")
            return True
        lane.steps.record(self.modules.clock() - start, batch)
        self._observe()
        return True

    def _ranks(self, now: float) -> dict[str, Rank]:
        """For each lane: the urgency of its work, by the moment at which it could be heard if
        nothing else were done until then."""
        ranks: dict[str, Rank] = {}
        later = 0.0  # what the lanes behind take for a code
        codec = self.modules.codec.steps.typical
        ranks["codec"] = self._rank(now, codec, 0.0, 0.0)
        for lane in reversed(self.modules.stages):
            ranks[lane.name] = self._rank(now, lane.steps.typical, later, codec)
            later += lane.steps.typical
        return ranks

    def _rank(self, now: float, step: float, later: float, codec: float) -> Rank:
        policy = self._policy

        def rank(work: Work) -> Urgency:
            heard = now + work.left * step + work.span * later + codec
            return policy(work.playback, work.at, heard)

        return rank

    def _next_lane(self, ranks: dict[str, Rank]) -> Lane | None:
        urgencies = {lane: lane.urgencies(ranks[lane.name]) for lane in reversed(self._lanes)}
        best = min((min(found) for found in urgencies.values() if found), default=None)
        if best is None:
            return None
        if best.level < TOGETHER:
            # On a tie the later lane: its work is closer to being heard.
            self._lane = next(lane for lane, found in urgencies.items() if best in found)
            return self._lane

        def crowd(lane: Lane) -> float:
            company = lane.crowd(sum(urgency.level <= best.level for urgency in urgencies[lane]))
            return company * _STAY if lane is self._lane else company

        self._lane = max(urgencies, key=crowd)
        return self._lane

    async def settle(self) -> None:
        """Let the streams' coroutines react to the last turn."""
        for _ in range(_SETTLE_ROUNDS):
            await asyncio.sleep(0)

    async def run(self) -> None:
        """Turn until ``stop``, sleeping while there is nothing to do, then end all streams."""
        while not self._stopping:
            self.modules.work_added.clear()
            worked = self.turn()
            await self.settle()
            if not worked and not self._stopping:
                await self.modules.work_added.wait()
        await self._end()

    async def _end(self) -> None:
        """Whoever is served or waits meets Unavailable; returns when no coroutine is left."""
        self._fail("the engine was closed")
        served = asyncio.all_tasks() - {asyncio.current_task()}
        await self.settle()  # a task cancelled before it began would not tell its reader
        for task in served:
            task.cancel()
        # Those who waited are let in, one after the other, and leave at once for the failure.
        while self.admission.active or self.admission.waiting or len(asyncio.all_tasks()) > 1:
            await self.settle()

    def stop(self) -> None:
        """End ``run`` after the current turn. Whoever submits later meets Unavailable."""
        self._stopping = True
        self.modules.work_added.set()

    def status(self) -> tuple[LaneStatus, ...]:
        """CB0..CB3 and the codec. Callable from any thread."""
        return tuple(lane.status() for lane in self._lanes)

    def _observe(self) -> None:
        """Now and then: what did the last audio cost, and may more or fewer streams play?"""
        audio = self.modules.emitted_seconds - self._observed.audio
        playing = self.admission.active
        if audio < _WINDOW_SECONDS * max(1, playing):
            return
        busy = sum(lane.steps.busy for lane in self._lanes)
        cost = (busy - self._observed.busy) / audio
        self.admission.limit.observe(cost, min(playing, self._observed.playing))
        self._observed = _Observed(self.modules.emitted_seconds, busy, playing)
        self.admission.refresh()

    def _fail(self, message: str) -> None:
        failure = self.modules.failure = Unavailable(message)
        for lane in self._lanes:
            lane.fail(failure)
