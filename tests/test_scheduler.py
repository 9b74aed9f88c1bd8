"""The scheduler in virtual time: what comes next, fairness, room, leaving, and its own crash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import fakes
from tontaube.errors import Busy, InvalidRequest, TontaubeError, Unavailable
from tontaube.pipeline import Delivery, Speech, in_order
from tontaube.scheduling.admission import Admission, StreamLimit
from tontaube.scheduling.outbox import Outbox
from tontaube.scheduling.scheduler import Scheduler
from tontaube.scheduling.session import Limits, Session, Submission
from tontaube.scheduling.urgency import (
    TOGETHER,
    ByDeadline,
    Playback,
    Policy,
    first_come_first_served,
    two_levels,
)
from tontaube.text.segments import split
from tontaube.types import AudioChunk, Segment, StageInput, StageJob

GRAMMAR = fakes.grammar()
TEXT = "One two three four, five six seven. Eight nine ten eleven twelve! Thirteen, fourteen it is."


@dataclass
class Reader:
    """A stream that was submitted, and what came out of it, with the moments of arrival."""

    submission: Submission
    outbox: Outbox
    chunks: list[AudioChunk] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    error: BaseException | None = None
    over: bool = False


@dataclass
class Bench:
    """A scheduler whose turns a test makes itself, in virtual time."""

    clock: fakes.Clock
    stages: list[fakes.FakeStage]
    scheduler: Scheduler
    count: int = 0
    readers: list[Reader] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def speak(self, text: str = TEXT, seed: int = 0) -> Reader:
        """Submit a request and read it."""
        self.count += 1
        delivery = Delivery(initial_frames=10, growth=1.5, max_frames=24)
        speech = Speech(
            f"s{self.count}",
            fakes.reading(GRAMMAR, seed),
            delivery,
            lambda: fakes.FakeDecoder(self.clock),
        )
        segments = tuple(split(text, GRAMMAR.description.segmentation))
        return self.submit(lambda session: speech.speak(in_order(segments), session))

    def submit(
        self, work: Callable[[Session], Awaitable[None]], *, read: bool = True, room: float = 1e9
    ) -> Reader:
        outbox = Outbox(self.scheduler.loop, room)
        reader = Reader(self.scheduler.submit(work, outbox, fakes.RATE), outbox)
        self.readers.append(reader)
        if read:
            self.tasks.append(asyncio.create_task(self._read(reader)))
        return reader

    async def _read(self, reader: Reader) -> None:
        try:
            while (chunk := await reader.outbox.get(fakes.RATE)) is not None:
                reader.chunks.append(chunk)
                reader.times.append(self.clock.now)
        except TontaubeError as error:
            reader.error = error
        reader.over = True

    async def turn(self) -> bool:
        """One turn, and the reactions to it."""
        worked = self.scheduler.turn()
        await self.scheduler.settle()
        if not worked:  # a chain of reactions may be longer
            await self.scheduler.settle()
            worked = self.scheduler.turn()
        return worked

    async def finish(self) -> None:
        """Turn until everything is spoken."""
        await self.scheduler.settle()
        while await self.turn():
            assert self.clock.now < 10_000
        for task in self.tasks:
            await task

    def held(self) -> int:
        """Jobs, calls and places that are not free."""
        lanes = sum(lane.waiting + lane.running for lane in self.scheduler.status())
        return lanes + self.scheduler.admission.active + self.scheduler.admission.waiting


@asynccontextmanager
async def bench(
    *,
    streams: int = 8,
    room: int = 8,
    max_batch: int = 8,
    policy: Policy | None = None,
    step: Callable[[int], float] = lambda batch: 0.004,
) -> AsyncIterator[Bench]:
    clock = fakes.Clock()
    stages = fakes.fake_stages(clock)
    for stage in stages:
        stage.seconds = step
    admission = Admission(StreamLimit(streams, streams, adjust=False), room, clock)
    scheduler = Scheduler(
        stages, admission, Limits(max_batch=max_batch), policy=policy, clock=clock
    )
    yield Bench(clock, stages, scheduler)


# Urgency -----------------------------------------------------------------------------------------


def test_a_playback_counts_pauses() -> None:
    playback = Playback(arrival=1.0)
    assert not playback.emit(2.0, 3.0)
    assert playback.buffered(4.0) == 1.0
    assert playback.emit(6.0, 2.0)  # dry since 5
    assert playback.buffered(6.0) == 2.0
    assert playback.first_emission == 2.0


def test_who_comes_first() -> None:
    policy, now = ByDeadline(reserve=0.5, patience=3.0), 10.0
    old, young, rich, poor, poorest = (Playback(a) for a in (9.0, 9.5, 1.0, 1.0, 1.0))
    rich.emit(9.0, 30.0)
    poor.emit(9.0, 2.5)
    poorest.emit(9.0, 1.2)
    work = [(rich, 30.0), (poor, 2.5), (young, 0.0), (old, 0.0), (old, 0.5), (poorest, 1.2)]
    order = sorted(work, key=lambda item: policy(*item, now))
    assert order == [work[5], work[3], work[2], work[1], work[4], work[0]]
    assert policy(rich, 30.0, now).level == policy(poor, 2.5, now).level > TOGETHER
    assert policy(poor, 2.5, now + 1.1).level == TOGETHER  # there is that much to do for it
    assert policy(Playback(7.4), 0.0, now).level == TOGETHER  # it has waited long enough
    assert policy(poor, 2.5, now + 1.4).level < TOGETHER  # the last moment
    assert policy(poor, 2.5, now + 1.6).level == TOGETHER  # too late to hurry


async def test_waiting_for_a_place_does_not_make_urgent() -> None:
    async with bench(streams=1, room=1) as b:
        moments = []

        async def first(session: Session) -> None:
            b.clock.now = 60.0

        async def second(session: Session) -> None:
            moments.append(session.playback.arrival)

        b.submit(first)
        b.submit(second)
        await b.finish()
    assert moments == [60.0]  # its patience begins with its turn


async def test_new_streams_overtake_those_with_audio_ahead() -> None:
    async with bench() as b:
        first = b.speak(TEXT * 4)
        while len(first.chunks) < 3:
            await b.turn()
        start = b.clock.now
        second = b.speak()
        await b.finish()
        alone = first.times[0]
        assert second.times[0] - start < 2 * alone
        assert first.over and second.over


async def test_streams_share_the_steps_of_every_stage() -> None:
    """Streams that came together go through all modules together, and so do those with time left:
    eight take far fewer steps than eight times one."""
    async with bench() as b:
        b.speak(TEXT * 3)
        await b.finish()
        alone = [len(stage.batches) for stage in b.stages]
    async with bench() as b:
        for seed in range(8):
            b.speak(TEXT * 3, seed=seed)
        await b.finish()
        for stage, steps in zip(b.stages, alone, strict=True):
            assert len(stage.batches) < 8 * steps / 4
            assert np.mean(stage.batches) > 4


@pytest.mark.parametrize("policy", [ByDeadline(), first_come_first_served, two_levels])
async def test_codes_do_not_depend_on_load_or_policy(policy: Policy) -> None:
    async with bench() as b:
        alone = b.speak(seed=3)
        await b.finish()
    async with bench(policy=policy, max_batch=2) as b:
        crowd = [b.speak(seed=seed) for seed in range(6)]
        await b.finish()
    assert crowd[3].times != alone.times
    audio = [b"".join(c.samples.tobytes() for c in r.chunks) for r in (alone, crowd[3])]
    assert audio[0] == audio[1]


def in_pieces(bench: Bench, number: int, pieces: int) -> Callable[[Session], Awaitable[None]]:
    """A stream reduced to its steps: ``FRAMES`` of each stage, then audio, ``pieces`` times."""

    async def work(session: Session) -> None:
        for piece in range(pieces):
            for stage in range(4):
                job = StageJob(f"{number}.{piece}.{stage}", StageInput((1,), (1,), 2), FRAMES)
                await session.run(stage, job, piece * FRAMES * 0.08).until()
            samples = np.zeros(FRAMES * fakes.HOP, np.float32)
            await session.emit(AudioChunk(samples, 0, Segment(0, "", 0, 0, True)))

    return work


FRAMES = 6


@given(
    arrivals=st.lists(st.tuples(st.floats(0, 10), st.integers(1, 9)), min_size=1, max_size=10),
    streams=st.integers(1, 4),
    step=st.sampled_from([0.002, 0.02, 0.2]),  # the last cannot keep up with a single listener
)
@settings(max_examples=25, deadline=None)
def test_no_stream_starves(arrivals: list[tuple[float, int]], streams: int, step: float) -> None:
    """Whatever arrives: everything is spoken, and while a stream is inside, the others' share of
    the turns between two of its chunks is bounded."""

    async def run() -> None:
        async with bench(streams=streams, room=len(arrivals), step=lambda _: step) as b:
            for moment, pieces in sorted(arrivals):
                while b.clock.now < moment and await b.turn():
                    pass
                b.clock.now = max(b.clock.now, moment)
                b.count += 1
                b.submit(in_pieces(b, b.count, pieces))
            await b.finish()
            assert all(reader.over and reader.error is None for reader in b.readers)
            assert b.held() == 0
            gaps = [later - earlier for r in b.readers for earlier, later in pairwise(r.times)]
            # At worst a listener's next piece is made after every other stream's, and no sooner
            # than when its work stops being relaxed.
            longest = streams * 4 * (FRAMES + 1) * step
            assert max(gaps, default=0.0) <= 2 * longest + 2.0 + FRAMES * 0.08

    asyncio.run(run())


# Leaving -----------------------------------------------------------------------------------------


async def test_leaving_frees_everything_before_the_next_step() -> None:
    """At every moment of a request's life, with others beside it that do not notice."""
    text = TEXT[:60]
    async with bench() as b:
        undisturbed = b.speak(text, seed=1)
        await b.finish()
        total = sum(len(stage.batches) for stage in b.stages)
    for moment in [*range(12), *range(12, total + 40, 19)]:
        async with bench() as b:
            other, leaving = b.speak(text, seed=1), b.speak(text, seed=2)
            for _ in range(moment):
                await b.turn()
            leaving.submission.cancel()
            await b.scheduler.settle()
            names = {name for stage in b.stages for name in running(stage)}
            assert not any(name.startswith("s2.") for name in names), moment
            await b.finish()
            assert b.held() == 0
            assert [c.samples.tobytes() for c in other.chunks] == [
                c.samples.tobytes() for c in undisturbed.chunks
            ]


def running(stage: fakes.FakeStage) -> list[str]:
    """Ids of the jobs that a stage holds."""
    done = set(stage.aborted) | stage.ended
    return [job.id for job in stage.jobs if job.id not in done]


async def test_leaving_the_waiting_room() -> None:
    async with bench(streams=1, room=2) as b:
        first, second, third = b.speak(), b.speak(), b.speak()
        assert [r.submission.queue_position for r in (first, second, third)] == [0, 1, 2]
        with pytest.raises(Busy):
            b.speak()
        second.submission.cancel()
        assert third.submission.queue_position == 1
        await b.finish()
        assert isinstance(second.error, TontaubeError) and not second.chunks
        assert first.over and third.over and third.error is None
        assert third.times[0] > first.times[-1]


async def test_leaving_before_it_began() -> None:
    async with bench() as b:
        reader = b.speak()
        reader.submission.cancel()
        await b.finish()
        assert reader.error is not None and not b.stages[0].jobs and b.held() == 0


# A reader that stalls ----------------------------------------------------------------------------


async def test_a_stalled_reader_pauses_itself_alone() -> None:
    async with bench() as b:
        decoder = fakes.FakeDecoder(b.clock)
        long = tuple(split(TEXT * 30, GRAMMAR.description.segmentation))
        delivery = Delivery(initial_frames=10, growth=1.5, max_frames=24)
        speech = Speech("stalled", fakes.reading(GRAMMAR), delivery, lambda: decoder)
        stalled = b.submit(
            lambda session: speech.speak(in_order(long), session), read=False, room=5.0
        )
        other = b.speak(TEXT * 3)
        while await b.turn():  # it comes to rest: nothing is done for the stalled one
            pass
        assert other.over and other.error is None
        written = sum(1 for job in b.stages[0].jobs if job.id.startswith("stalled"))
        assert written < 12  # of 90 segments
        got = [await stalled.outbox.get(fakes.RATE) for _ in range(3)]
        assert all(got) and await b.turn()
        stalled.submission.cancel()
        await b.finish()
        assert b.held() == 0


# Failures ----------------------------------------------------------------------------------------


async def test_a_job_that_never_fits_concerns_its_stream_alone() -> None:
    class Picky(fakes.FakeStage):
        def add(self, job: StageJob) -> None:
            if job.id.startswith("s1."):
                raise InvalidRequest("it does not fit", "text")
            super().add(job)

    async with bench() as b:
        picky = Picky(clock=b.clock)
        admission = Admission(StreamLimit(4, 4), 4, b.clock)
        b.scheduler = Scheduler([*b.stages[:3], picky], admission, clock=b.clock)
        refused, served = b.speak(), b.speak()
        await b.finish()
        assert isinstance(refused.error, InvalidRequest)
        assert served.error is None and served.chunks
        assert b.held() == 0


async def test_a_crash_fails_all_and_refuses_later_ones() -> None:
    async with bench() as b:
        b.stages[1].fail_at_step = 5
        readers = [b.speak(), b.speak()]
        await b.finish()
        assert all(isinstance(reader.error, Unavailable) for reader in readers)
        assert b.held() == 0
        with pytest.raises(Unavailable, match="cb1: MemoryError"):
            b.speak()


# The limit of streams ----------------------------------------------------------------------------


@pytest.mark.parametrize("first", [1, 5, 16])
@pytest.mark.parametrize("shared", [0.0, 0.3, 0.8])
def test_the_limit_settles_where_streams_fit(first: int, shared: float) -> None:
    """From any start, though measurements scatter, and more streams cost less each: ``shared`` of
    the cost of a lone one."""
    random = np.random.default_rng(0)

    def cost(streams: int) -> float:
        return 0.12 * (1 - shared + shared / streams)

    fits = max(n for n in range(1, 17) if n * cost(n) < 0.85)
    limit = StreamLimit(maximum=16, value=first)
    seen = [first]
    for _ in range(2_000):
        limit.observe(cost(limit.value) * random.uniform(0.95, 1.05), limit.value)
        seen.append(limit.value)
    late = seen[500:]
    assert set(late) <= {fits - 1, fits, fits + 1}
    assert sum(earlier != later for earlier, later in pairwise(late)) <= 20
    assert np.mean([value > fits for value in late]) < 0.05  # tried now and then


def test_the_limit_falls_fast_and_rises_slowly() -> None:
    limit = StreamLimit(maximum=64, value=64)
    for _ in range(40):
        limit.observe(0.1, limit.value)
    assert limit.value in (8, 9)
    for _ in range(400):
        limit.observe(0.01, limit.value)
    assert limit.value == 64


def test_a_limit_that_is_not_reached_is_not_judged() -> None:
    limit = StreamLimit(maximum=8, value=3)
    for cost in (0.001, 9.0):
        for _ in range(30):
            limit.observe(cost, 2)
    assert limit.value == 3
    fixed = StreamLimit(maximum=8, value=8, adjust=False)
    for _ in range(30):
        fixed.observe(9.0, 8)
    assert fixed.value == 8


@pytest.mark.parametrize("first", [1, 12])
async def test_the_limit_settles_while_streams_are_spoken(first: int) -> None:
    """The scheduler's own measurements, with steps that cost nearly as much as there is time."""
    async with bench(step=lambda batch: 0.001 + 0.001 * batch) as b:
        b.scheduler.admission = admission = Admission(StreamLimit(12, first), 400, b.clock)
        for seed in range(120):
            b.speak(TEXT * 2, seed=seed)
        seen = []
        await b.scheduler.settle()
        while await b.turn():
            if admission.waiting:  # as long as the limit is reached
                seen.append(admission.limit.value)
        late = seen[len(seen) // 2 :]
        assert max(late) - min(late) <= 2 and 6 <= np.median(late) <= 8
