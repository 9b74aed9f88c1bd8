"""Requests at random moments → what their listeners hear, with the real scheduler in virtual time.

Scheduler, sessions, admission and pipeline are those of the server; only the five modules are
simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tontaube.bench import curves, simulated
from tontaube.bench.listening import Arrival
from tontaube.errors import Busy, TontaubeError
from tontaube.pipeline import Delivery, Speech, in_order
from tontaube.scheduling.admission import Admission, StreamLimit
from tontaube.scheduling.outbox import Outbox
from tontaube.scheduling.scheduler import Scheduler
from tontaube.scheduling.session import Limits
from tontaube.scheduling.urgency import Policy
from tontaube.stages.quality import expected_frames
from tontaube.stages.reading import Grammar
from tontaube.text.segments import split
from tontaube.types import Segment

_TIMERS_EVERY = 32  # turns


@dataclass(frozen=True, slots=True)
class Server:
    """What is simulated: step times, the places, and how many sequences a stage steps at once."""

    curves: curves.Curves = curves.H100
    max_streams: int = 64
    first_limit: int = 64  # streams at once, before anything was measured
    adjust: bool = True
    room: int = 64
    max_batch: int = 64


@dataclass(frozen=True, slots=True)
class Request:
    """A text that comes at a moment, and how many frames CB0 will make of each segment."""

    at: float
    segments: tuple[Segment, ...]
    frames: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Characters of a text are log-normal: a median of a sentence, now and then a long paragraph
    (mean 110). Speaking rates scatter by a tenth."""

    seconds: float = 60.0
    seed: int = 0
    median_characters: float = 80.0
    spread: float = 0.8
    shortest: int = 12
    longest: int = 2_000

    def requests(self, rate: float, grammar: Grammar) -> list[Request]:
        """Poisson arrivals at ``rate`` a second."""
        random = np.random.default_rng((self.seed, round(rate * 1_000)))
        moments = np.cumsum(random.exponential(1 / rate, round(rate * self.seconds * 2) + 20))
        return [
            self._request(float(moment), random, grammar)
            for moment in moments[moments < self.seconds]
        ]

    def _request(self, moment: float, random: np.random.Generator, grammar: Grammar) -> Request:
        drawn = random.lognormal(np.log(self.median_characters), self.spread)
        length = int(np.clip(drawn, self.shortest, self.longest))
        segments = tuple(split(words(length, random), grammar.description.segmentation))
        shortest = grammar.description.sampling.min_frames
        frames = tuple(
            max(shortest, round(expected_frames(s.text) * random.normal(1.0, 0.1)))
            for s in segments
        )
        return Request(moment, segments, frames)


def words(length: int, random: np.random.Generator) -> str:
    """About ``length`` characters in words of ordinary lengths, a full stop after a dozen."""
    text, count = "", 0
    while len(text) < length:
        count += 1
        text += "a" * int(random.integers(2, 9)) + (". " if count % 12 == 0 else " ")
    return text[: length - 1].strip(" .") + "."


@dataclass(slots=True)
class Heard:
    """What became of a request."""

    asked: float
    arrivals: list[Arrival] = field(default_factory=list)
    outcome: str = "rejected"


class Simulation:
    """One server under one policy."""

    def __init__(self, server: Server, policy: Policy, loop: simulated.VirtualLoop) -> None:
        """To be made in ``loop``, in which it runs."""
        self._grammar = simulated.grammar()
        self._reading = simulated.reading(self._grammar)
        self._server = server
        self._clock = clock = loop.clock
        self._loop = loop
        self._turns = 0
        self._frames: dict[str, int] = {}
        stages = [
            simulated.SimulatedStage(curve, clock, None if number else self._frames)
            for number, curve in enumerate(server.curves.stages)
        ]
        limit = StreamLimit(server.max_streams, server.first_limit, server.adjust)
        self.scheduler = Scheduler(
            stages,
            Admission(limit, server.room, clock),
            Limits(max_batch=server.max_batch),
            policy=policy,
            clock=clock,
        )
        self.limits: list[tuple[float, int]] = [(0.0, limit.value)]
        self.busiest = 0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def grammar(self) -> Grammar:
        """What requests are written for."""
        return self._grammar

    async def run(self, requests: Sequence[Request]) -> list[Heard]:
        """Serve all of them to their end."""
        heard = [Heard(request.at) for request in requests]
        coming = 0
        while True:
            while coming < len(requests) and requests[coming].at <= self._clock.now:
                self._submit(coming, requests[coming], heard[coming])
                coming += 1
                await self.scheduler.settle()
            if await self._turn():
                continue
            if coming == len(requests):
                break
            self._clock.now = max(self._clock.now, requests[coming].at)
        await asyncio.gather(*self._tasks)
        return heard

    async def _turn(self) -> bool:
        """One turn and the reactions to it."""
        before, self._turns = self._loop.awaited, self._turns + 1
        worked = self.scheduler.turn()
        # Most steps wake nobody; settling all the same, now and then, lets timers go off.
        if not worked or self._loop.awaited > before or self._turns % _TIMERS_EVERY == 0:
            await self.scheduler.settle()
        if not worked:  # a chain of reactions may be longer
            await self.scheduler.settle()
            worked = self.scheduler.turn()
        admission = self.scheduler.admission
        self.busiest = max(self.busiest, admission.active)
        if admission.limit.value != self.limits[-1][1]:
            self.limits.append((self._clock.now, admission.limit.value))
        return worked

    def _submit(self, number: int, request: Request, heard: Heard) -> None:
        name = f"s{number}"
        for segment, frames in zip(request.segments, request.frames, strict=True):
            self._frames[f"{name}.{segment.index}"] = frames
        streaming = self._grammar.description.streaming
        delivery = Delivery(
            initial_frames=streaming.initial_frames,
            growth=streaming.growth,
            max_frames=streaming.max_frames,
            trim_silence=False,
            sample_rate=simulated.RATE,
        )
        speech = Speech(name, self._reading, delivery, self._decoder)
        outbox = Outbox(self.scheduler.loop, 1e9)
        try:
            self.scheduler.submit(
                lambda session: speech.speak(in_order(request.segments), session),
                outbox,
                simulated.RATE,
            )
        except Busy:
            return
        self._tasks.append(asyncio.create_task(self._read(outbox, heard)))

    def _decoder(self) -> simulated.SimulatedDecoder:
        withheld = self._grammar.description.streaming.withheld_frames
        return simulated.SimulatedDecoder(self._server.curves.codec, self._clock, withheld)

    async def _read(self, outbox: Outbox, heard: Heard) -> None:
        try:
            while (chunk := await outbox.get(simulated.RATE)) is not None:
                seconds = len(chunk.samples) / simulated.RATE
                heard.arrivals.append(Arrival(self._clock.now, seconds))
        except TontaubeError:
            heard.outcome = "failed"
        else:
            heard.outcome = "heard"
