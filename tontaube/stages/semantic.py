"""Text → C0. What CB0 is asked about a segment, and how its answer becomes pieces, with retries.

The window keeps one segment of the past, text and codes, and a glimpse of the text to come
(report, section 4.3); a retry is the same question with another seed and more bias against silence.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from tontaube.errors import GenerationFailed
from tontaube.layout import Rows, lay_out
from tontaube.stages.ports import Models, Run
from tontaube.stages.quality import Verdict, expected_frames, frame_cap, judge, judge_beginning
from tontaube.stages.reading import Reading
from tontaube.text.segments import boundary_text, lookahead
from tontaube.types import Segment, StageJob

log = logging.getLogger(__name__)

Texts = AsyncIterator[tuple[Segment, Segment | None]]
"""Segments in order, each with the one that follows it (None: the last one, or not known yet)."""


@dataclass(frozen=True, slots=True)
class Window:
    """A segment, the one before it with its C0, and the one after it."""

    segment: Segment
    previous: Segment | None = None
    previous_c0: Sequence[int] = ()
    following: Segment | None = None


def known_frames(reading: Reading, window: Window) -> tuple[int, ...]:
    """C0 that is given, not generated: the onset-silence code that opens a request."""
    onset = reading.grammar.description.silence.onset
    return (onset,) if onset is not None and window.previous is None else ()


def semantic_job(reading: Reading, window: Window, attempt: int, job_id: str) -> StageJob:
    """The job of CB0 for try ``attempt`` (from 0). Its codes follow ``known_frames``."""
    grammar = reading.grammar
    sampling = grammar.description.sampling
    known = known_frames(reading, window)
    characters = grammar.tokenizer.characters
    texts = [characters(boundary_text(window.segment))]
    if window.previous is not None:
        texts.insert(0, characters(boundary_text(window.previous)))
    if window.following is not None:
        limit = grammar.description.segmentation.lookahead
        texts.append(characters(lookahead(boundary_text(window.following), limit)))
    rows = Rows(
        stage=0,
        prompt=reading.prompt(0),
        control=reading.control,
        text=texts,
        c0=[window.previous_c0] if window.previous is not None else [known] if known else [],
        c0_open_boundary=window.previous is not None,
    )
    cap = frame_cap(window.segment.text, sampling)
    return StageJob(
        id=job_id,
        input=lay_out(rows, grammar.vocabularies[0]),
        max_codes=cap - len(known),
        min_codes=max(0, min(sampling.min_frames, cap) - len(known)),
        sampling=reading.sampling(0, window.segment.index, attempt),
        bias=_bias(reading, attempt),
    )


def _bias(reading: Reading, attempt: int) -> dict[int, float]:
    """Added to CB0's logits (contract, section 7); ``end_of_speech`` follows the codes."""
    description = reading.grammar.description
    sampling, silence = description.sampling, description.silence
    end_of_speech = reading.grammar.vocabularies[0].sizes[0]
    raised = sampling.silence_bias + attempt * sampling.silence_bias_per_retry
    bias = {
        end_of_speech: sampling.end_of_speech_bias,
        **dict.fromkeys(silence.more_codes, sampling.silence_bias),
        **dict.fromkeys(silence.codes, raised),
    }
    return {code: value for code, value in bias.items() if value}


@dataclass(frozen=True, slots=True)
class Piece:
    """Frames of a segment that are refined together: ``c0`` is the segment's from its start,
    ``known`` of them were in earlier pieces; it starts at frame ``offset`` of the stream."""

    segment: Segment
    c0: tuple[int, ...]
    known: int
    offset: int
    complete: bool  # the segment ends with this piece


@dataclass(slots=True)
class Ramp:
    """Piece sizes in frames: a short one first, so that it is heard early, then longer ones."""

    initial: int
    growth: float
    maximum: int
    _size: float = 0.0

    def size(self) -> int:
        """Of the next piece."""
        return max(1, int(self._size or self.initial))

    def advance(self) -> None:
        """The next piece may be longer."""
        self._size = min(float(max(self.maximum, self.initial)), self.size() * self.growth)


HandOn = Callable[[Piece], Awaitable[None]]


class Writer:
    """CB0's part in one request. Sizes and retries depend on counts of frames alone, never on time:
    the same seed gives the same pieces whatever else runs."""

    def __init__(
        self, stream_id: str, reading: Reading, ramp: Ramp, seconds: Callable[[int], float]
    ) -> None:
        """``seconds`` says where in the stream's audio a frame is heard."""
        self._id = stream_id
        self._reading = reading
        self._ramp = ramp
        self._seconds = seconds
        self._rules = reading.grammar.description.sampling
        self._silence = reading.grammar.description.silence
        self._frames = 0  # of the segments before the current one

    async def write(self, texts: Texts, models: Models, hand_on: HandOn) -> None:
        """Hand on the pieces of all segments, in order. Raises GenerationFailed."""
        previous = self._reading.before
        continues = self._reading.continues
        c0: tuple[int, ...] = tuple(continues.codes[0].tolist()) if continues else ()
        async for segment, following in texts:
            c0 = await self._segment(Window(segment, previous, c0, following), models, hand_on)
            previous = segment
            self._frames += len(c0)

    async def _segment(self, window: Window, models: Models, hand_on: HandOn) -> tuple[int, ...]:
        """Try until a C0 passes, handing on its pieces; the C0.

        A segment before which as much speech was written as it will probably take is judged whole
        before its first piece is handed on; an earlier one by its beginning only.
        """
        segment = window.segment
        patient = self._frames >= expected_frames(segment.text)
        best: tuple[Verdict, tuple[int, ...]] | None = None
        for attempt in range(self._reading.tries):
            name = f"{self._id}.{segment.index}.0.{attempt}"
            job = semantic_job(self._reading, window, attempt, name)
            answer = _Answer(
                models.run(0, job, self._seconds(self._frames)),
                known_frames(self._reading, window),
            )
            try:
                if await answer.until(None if patient else self._ramp.size()):
                    verdict = self._judge(segment, answer)
                    if best is None or verdict < best[0]:
                        best = (verdict, answer.frames)
                else:
                    verdict = judge_beginning(answer.frames, self._rules, self._silence)
                    if verdict is Verdict.PASSED:
                        return await self._hand_on_growing(segment, answer, hand_on)
            finally:
                answer.run.close()
            if verdict is Verdict.PASSED:
                break
            self._log(segment, f"try {attempt + 1}", verdict)
        c0 = self._settle_for(best)
        await self._hand_on(segment, c0, 0, hand_on)
        return c0

    async def _hand_on_growing(
        self, segment: Segment, answer: _Answer, hand_on: HandOn
    ) -> tuple[int, ...]:
        """Hand on pieces while CB0 goes on; there is no way back from here."""
        begin = 0
        ended = False
        while not ended:
            end = begin + self._ramp.size()
            ended = await answer.until(end)
            if len(answer.frames) >= end:
                await self._piece(segment, answer.frames[:end], begin, False, hand_on)
                begin = end
                answer.run.at = self._seconds(self._frames + begin)
        verdict = self._judge(segment, answer)
        if verdict is not Verdict.PASSED:
            self._log(segment, "spoken already", verdict)
        await self._hand_on(segment, answer.frames, begin, hand_on)
        return answer.frames

    async def _hand_on(
        self, segment: Segment, c0: tuple[int, ...], begin: int, hand_on: HandOn
    ) -> None:
        """What is left of a finished segment; the last piece, maybe empty, completes it."""
        complete = False
        while not complete:
            end = min(begin + self._ramp.size(), len(c0))
            complete = end == len(c0)
            await self._piece(segment, c0[:end], begin, complete, hand_on)
            begin = end

    async def _piece(
        self,
        segment: Segment,
        c0: tuple[int, ...],
        known: int,
        complete: bool,
        hand_on: HandOn,
    ) -> None:
        self._ramp.advance()
        await hand_on(Piece(segment, c0, known, self._frames, complete))

    def _judge(self, segment: Segment, answer: _Answer) -> Verdict:
        ended = answer.run.finish != "length"
        return judge(answer.frames, segment.text, ended, self._rules, self._silence)

    def _settle_for(self, best: tuple[Verdict, tuple[int, ...]] | None) -> tuple[int, ...]:
        """The best try. A wrong rate is better than nothing; worse only where speech has begun,
        which it would be worse to break off."""
        if best is None or not best[1] or (best[0] > Verdict.WRONG_RATE and not self._frames):
            raise GenerationFailed(
                "the model found no way to speak this text; change its wording, voice or seed"
            )
        return best[1]

    def _log(self, segment: Segment, what: str, verdict: Verdict) -> None:
        log.info("%s segment %d, %s: %s", self._id, segment.index, what, verdict.name)


class _Answer:
    """CB0's frames for one try: those given and those it has written so far."""

    def __init__(self, run: Run, known: tuple[int, ...]) -> None:
        self.run = run
        self._known = known

    async def until(self, count: int | None) -> bool:
        """Wait for ``count`` frames in all, or the end; True if it has ended."""
        return await self.run.until(None if count is None else count - len(self._known))

    @property
    def frames(self) -> tuple[int, ...]:
        return (*self._known, *self.run.codes)
