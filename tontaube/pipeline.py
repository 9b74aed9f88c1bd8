"""ONE request, read top to bottom: text → C0 → C0..C3 → samples → audio chunks.

Three coroutines hand pieces to each other and overlap: CB0 writes segment n + 1 while CB1..CB3
refine segment n and the codec decodes what is before it. What is generated depends on the request
and its seed alone: every decision counts frames, none looks at a clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tontaube.audio.chunks import Chunker
from tontaube.errors import GenerationFailed
from tontaube.stages.acoustic import refine
from tontaube.stages.ports import Decoder, Models
from tontaube.stages.quality import FRAMES_PER_SECOND, expected_frames
from tontaube.stages.reading import Reading
from tontaube.stages.semantic import Piece, Ramp, Texts, Writer
from tontaube.types import STREAMS, Codes, Continuation, Segment

_WRITTEN_AHEAD = 4  # pieces that CB0 may be ahead of CB1
_REFINED_AHEAD = 2  # pieces in refinement beside the one that is voiced next


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How a request wants its audio: the ramp of piece sizes in frames, speed, silences."""

    initial_frames: int
    growth: float
    max_frames: int
    speed: float = 1.0
    trim_silence: bool = True
    trailing_silence: bool = True
    sample_rate: int = 24_000


class Speech:
    """One request being spoken."""

    def __init__(
        self,
        stream_id: str,
        reading: Reading,
        delivery: Delivery,
        new_decoder: Callable[[], Decoder],
    ) -> None:
        """``stream_id`` must be unique among the streams that are spoken; the decoder is made when
        it is needed."""
        self._id = stream_id
        self._reading = reading
        self._delivery = delivery
        self._new_decoder = new_decoder
        self._decoder: Decoder | None = None
        self._hop = round(delivery.sample_rate / FRAMES_PER_SECOND)
        self._chunker = Chunker(
            delivery.sample_rate, speed=delivery.speed, trim=delivery.trim_silence
        )
        self.frames = 0
        """Frames that were refined and given to the decoder."""
        self.last: Continuation | None = None
        """The segment that is spoken now, as far as its codes are known."""

    async def speak(self, texts: Texts, models: Models) -> None:
        """Emit all of it. Raises what went wrong first; cancelling leaves no job behind."""
        written: asyncio.Queue[Piece | None] = asyncio.Queue(_WRITTEN_AHEAD)
        refined: asyncio.Queue[tuple[Piece, asyncio.Task[Codes]] | None] = asyncio.Queue(
            _REFINED_AHEAD
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._write(texts, models, written))
                group.create_task(self._refine(written, models, refined, group))
                group.create_task(self._voice(refined, models))
        except BaseExceptionGroup as several:
            raise _first(several) from None

    async def _write(
        self, texts: Texts, models: Models, written: asyncio.Queue[Piece | None]
    ) -> None:
        """Text → C0, a piece at a time."""
        ramp = Ramp(self._delivery.initial_frames, self._delivery.growth, self._delivery.max_frames)
        writer = Writer(self._id, self._reading, ramp, self._seconds)
        await writer.write(texts, models, written.put)
        await written.put(None)

    async def _refine(
        self,
        written: asyncio.Queue[Piece | None],
        models: Models,
        refined: asyncio.Queue[tuple[Piece, asyncio.Task[Codes]] | None],
        group: asyncio.TaskGroup,
    ) -> None:
        """C0 → C0..C3. A piece needs the one before it in its segment; segments are independent."""
        before: asyncio.Task[Codes] | None = None
        while (piece := await written.get()) is not None:
            before = group.create_task(self._refine_piece(piece, before, models))
            await refined.put((piece, before))
            if piece.complete:
                before = None
        await refined.put(None)

    async def _refine_piece(
        self, piece: Piece, before: asyncio.Task[Codes] | None, models: Models
    ) -> Codes:
        known = np.zeros((STREAMS, 0), np.int64) if before is None else await before
        at = self._seconds(piece.offset + piece.known)
        return await refine(self._id, self._reading, piece, known, models, at)

    async def _voice(
        self, refined: asyncio.Queue[tuple[Piece, asyncio.Task[Codes]] | None], models: Models
    ) -> None:
        """C0..C3 → samples → chunks."""
        while (item := await refined.get()) is not None:
            piece, task = item
            codes = await task
            self.last = Continuation(piece.segment.text, codes)
            self._expect(piece)
            at = self._seconds(piece.offset + piece.known)
            await self._decode(codes[:, piece.known :], models, at)
        if not self.frames:
            raise GenerationFailed("there was nothing to speak")
        if self._delivery.trailing_silence:
            await self._decode(self._silence(), models, self._seconds(self.frames))
        assert self._decoder is not None
        samples = await models.decode(self._decoder, None, self._seconds(self.frames))
        for chunk in [*self._chunker.push(samples), *self._chunker.finish()]:
            await models.emit(chunk)

    async def _decode(self, codes: Codes, models: Models, at: float) -> None:
        if not codes.shape[1]:
            return
        self.frames += codes.shape[1]
        decoder = self._decoder = self._decoder or self._new_decoder()
        samples = await models.decode(decoder, codes, at)
        for chunk in self._chunker.push(samples):
            await models.emit(chunk)

    def _expect(self, piece: Piece) -> None:
        frames = len(piece.c0)
        if not piece.complete:
            frames = max(frames + 1, expected_frames(piece.segment.text))
        self._chunker.expect(piece.segment, piece.offset * self._hop, frames * self._hop)

    def _silence(self) -> Codes:
        """The frames after the last segment, [4, n]."""
        silence = self._reading.grammar.description.silence
        frames = silence.trailing_frames if silence.trailing else 0
        return np.tile(np.array(silence.trailing, np.int64).reshape(-1, 1), (1, frames))

    def _seconds(self, frame: int) -> float:
        """Where in the emitted audio a frame is heard, as far as it is known yet."""
        return self._chunker.seconds(frame * self._hop)


async def in_order(segments: tuple[Segment, ...]) -> Texts:
    """The text of a request that is known as a whole."""
    for segment, following in zip(segments, (*segments[1:], None), strict=True):
        yield segment, following


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    error = several.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
