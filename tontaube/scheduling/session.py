"""One stream inside the scheduler: what its coroutine may ask of the modules, where its audio goes,
and its way from the waiting room to its end. It knows no text and no codes' meaning.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tontaube.errors import DeadlineExceeded, TontaubeError
from tontaube.scheduling.admission import Admission
from tontaube.scheduling.lanes import CodecLane, StageLane, StageRun
from tontaube.scheduling.outbox import Outbox
from tontaube.scheduling.urgency import Playback
from tontaube.stages.ports import Decoder
from tontaube.types import AudioChunk, Codes, Samples, StageJob

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of a stream in seconds, and how many sequences a stage steps together."""

    max_batch: int = 16
    wait_timeout: float = 60.0
    progress_timeout: float = 60.0
    reader_timeout: float = 120.0


@dataclass(slots=True)
class Modules:
    """The lanes of CB0..CB3 and the codec, and what else all sessions share."""

    stages: Sequence[StageLane]
    codec: CodecLane
    limits: Limits
    clock: Callable[[], float]
    work_added: asyncio.Event = field(default_factory=asyncio.Event)
    emitted_seconds: float = 0.0
    underruns: int = 0  # times a listener ran dry
    cancelled: int = 0  # streams that were left before their end
    failure: TontaubeError | None = None  # why no step can be made any more


class Session:
    """A stream's coroutine works through this. All methods are for the scheduler's loop."""

    def __init__(self, modules: Modules, outbox: Outbox, sample_rate: int) -> None:
        self.playback = Playback(modules.clock())
        self._sample_rate = sample_rate
        self._modules = modules
        self._outbox = outbox
        self._runs: set[StageRun] = set()
        self._busy = 0  # work asked for and not done; without any no progress is expected
        self._deadline: asyncio.Timeout | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def run(self, stage: int, job: StageJob, at: float) -> StageRun:
        """Queue a job for CB{stage} that makes the audio ``at`` seconds into the stream."""
        self._expect_open()
        run = self._modules.stages[stage].add(job, self.playback, at)
        run.when_over(self._forget)
        self._runs.add(run)
        self._begin()
        return run

    async def decode(self, decoder: Decoder, codes: Codes | None, at: float) -> Samples:
        """Have codes decoded (None: the rest) for the audio ``at`` seconds into the stream."""
        self._expect_open()
        self._begin()
        try:
            return await self._modules.codec.decode(decoder, codes, self.playback, at)
        finally:
            self._end()

    async def emit(self, chunk: AudioChunk) -> None:
        """Hand audio to the reader; waits while the reader has too much untaken audio. Raises
        DeadlineExceeded when nothing is taken for too long."""
        self._expect_open()
        seconds = len(chunk.samples) / self._sample_rate
        self._modules.underruns += self.playback.emit(self._modules.clock(), seconds)
        self._modules.emitted_seconds += seconds
        self._outbox.put(chunk, seconds)
        if self._busy:
            self._restart_deadline()
        if self._outbox.full:
            await self._await_reader()

    async def _await_reader(self) -> None:
        self._set_deadline(None)  # work already queued may wait for the reader too
        try:
            async with asyncio.timeout(self._modules.limits.reader_timeout):
                await self._outbox.room()
        except TimeoutError:
            raise DeadlineExceeded("the audio was not read for too long") from None
        if self._busy:
            self._restart_deadline()

    async def serve(self, work: Callable[[Session], Awaitable[None]]) -> None:
        """Do the stream's work to its end, however it ends; errors go to the reader alone."""
        self._task = asyncio.current_task()
        # Its patience begins here: after a long wait it would go before listeners about to run dry.
        self.playback.arrival = self._modules.clock()
        error: Exception | None = None
        try:
            self._expect_open()
            async with asyncio.timeout(None) as self._deadline:
                await work(self)
        except asyncio.CancelledError:
            error = self._modules.failure or TontaubeError("the stream was cancelled")
        except TimeoutError:
            limit = self._modules.limits.progress_timeout
            error = DeadlineExceeded(f"no new audio within {limit:g} seconds")
        except TontaubeError as known:
            error = known
        except Exception as unknown:
            log.exception("a stream failed")
            error = TontaubeError(f"internal error: {type(unknown).__name__}: {unknown}")
        finally:
            self._free()
            self._outbox.end(error)

    @property
    def limits(self) -> Limits:
        """The time limits it is served under."""
        return self._modules.limits

    def give_up(self, error: TontaubeError) -> None:
        """End the stream before it was served. Callable from any thread."""
        self._outbox.end(error)

    def cancel(self) -> None:
        """Free everything the stream holds in any module, now; its coroutine ends soon after."""
        self._modules.cancelled += 1
        self._free()
        if self._task is not None:
            self._task.cancel()

    def _free(self) -> None:
        self._closed = True
        for run in list(self._runs):
            run.close()
        self._modules.codec.drop(self.playback)

    def _expect_open(self) -> None:
        if self._modules.failure is not None:
            raise self._modules.failure
        if self._closed:
            raise asyncio.CancelledError

    def _forget(self, run: StageRun) -> None:
        self._runs.discard(run)
        self._end()

    def _begin(self) -> None:
        self._busy += 1
        if self._busy == 1:
            self._restart_deadline()
        self._modules.work_added.set()

    def _end(self) -> None:
        self._busy -= 1
        if self._busy == 0:
            self._set_deadline(None)

    def _restart_deadline(self) -> None:
        if self._outbox.full:  # the reader is waited for, not the modules
            return
        limit = self._modules.limits.progress_timeout
        self._set_deadline(asyncio.get_running_loop().time() + limit)

    def _set_deadline(self, when: float | None) -> None:
        if self._deadline is not None and not self._deadline.expired() and not self._closed:
            self._deadline.reschedule(when)


class Submission:
    """A request's ticket: it waits, is served, and gives its place up. Usable from any thread."""

    def __init__(
        self,
        session: Session,
        work: Callable[[Session], Awaitable[None]],
        admission: Admission,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """``loop`` is the scheduler's; ``work`` runs there, once, when the turn comes."""
        self._session = session
        self._work = work
        self._admission = admission
        self._loop = loop
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        admission.enter(self)
        if self.queue_position:
            loop.call_soon_threadsafe(self._limit_wait)

    @property
    def queue_position(self) -> int:
        """Its place in the waiting room, from 1; 0 once its turn has come."""
        return self._admission.position(self)

    def start(self) -> None:
        self._loop.call_soon_threadsafe(self._begin)

    def cancel(self) -> None:
        """Leave the waiting room, or free everything before the scheduler's next step."""
        if self._admission.withdraw(self):
            self._session.give_up(TontaubeError("the stream was cancelled"))
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._stop_timer)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _begin(self) -> None:
        self._stop_timer()
        self._task = self._loop.create_task(self._session.serve(self._work))
        self._task.add_done_callback(lambda _: self._admission.leave(self))

    def _cancel(self) -> None:
        if self._task is None or not self._task.done():
            self._session.cancel()

    def _stop_timer(self) -> None:
        if self._timer is not None:  # else it would keep the session until it goes off
            self._timer.cancel()
            self._timer = None

    def _limit_wait(self) -> None:
        if self.queue_position:
            limit = self._session.limits.wait_timeout
            self._timer = self._loop.call_later(limit, self._expire)

    def _expire(self) -> None:
        if self._admission.withdraw(self):
            limit = self._session.limits.wait_timeout
            self._session.give_up(DeadlineExceeded(f"no place became free in {limit:g} seconds"))
