"""A request being spoken, as its reader sees it: its audio in chunks, and how far it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tontaube.cache import Phrase, PhraseCache
from tontaube.plan import Plan
from tontaube.scheduling.outbox import Outbox
from tontaube.scheduling.session import Submission
from tontaube.types import STREAMS, AudioChunk, Continuation, Samples, Segment, Voice


@dataclass(frozen=True, slots=True)
class Usage:
    """Characters read and codes written so far, as OpenAI's token counts."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Spoken:
    """How far the audio that was taken reaches: characters of the request's text (a guess inside a
    segment) and samples."""

    characters: int
    samples: int


class Progress(Protocol):
    """What the pipeline, or a kept phrase, tells of itself."""

    @property
    def frames(self) -> int: ...
    @property
    def last(self) -> Continuation | None: ...


class SpeechStream:
    """Iterate once. Leaving the engine's context ends it, wherever it is."""

    def __init__(
        self,
        plan: Plan,
        source: Outbox | Phrase,
        submission: Submission | None,
        progress: Progress,
        cache: PhraseCache | None = None,
    ) -> None:
        """``source``: where chunks come from; ``cache``: where to keep the phrase if it will be the
        same the next time."""
        self._plan = plan
        self._source = source
        self._submission = submission
        self._progress = progress
        self._spoken = Spoken(0, 0)
        self._cache = cache if plan.key is not None else None
        self.segments: list[Segment] = list(plan.segments)
        """The text in the order it is spoken; grows while text is dictated."""
        self.complete = False
        """Whether the last chunk was taken."""

    @property
    def voice(self) -> Voice:
        """Who speaks."""
        return self._plan.reading.voice

    @property
    def language(self) -> str:
        """The label."""
        return self._plan.language

    @property
    def style(self) -> str:
        """One of the bundle's styles."""
        return self._plan.style

    @property
    def queue_position(self) -> int:
        """Its place in the waiting room, from 1; 0 once its turn has come."""
        return self._submission.queue_position if self._submission else 0

    @property
    def usage(self) -> Usage:
        """So far."""
        characters = sum(len(segment.text) for segment in self.segments)
        return Usage(characters, STREAMS * self._progress.frames)

    @property
    def continuation(self) -> Continuation | None:
        """For a request that is to go on where this one ends; complete after the last chunk."""
        return self._progress.last

    def spoken(self) -> Spoken:
        """Of the audio taken so far."""
        return self._spoken

    async def __aiter__(self) -> AsyncIterator[AudioChunk]:
        if isinstance(self._source, Phrase):
            for chunk in self._source.chunks:
                self._note(chunk)
                yield chunk
        else:
            kept: list[AudioChunk] = []
            while (arrived := await self._source.get(self._plan.delivery.sample_rate)) is not None:
                self._note(arrived)
                if self._cache is not None:
                    kept.append(arrived)
                    if 4 * self._spoken.samples > self._cache.most_bytes:  # too long to keep
                        self._cache, kept = None, []
                yield arrived
            if self._cache is not None and self._plan.key is not None:
                phrase = Phrase(tuple(kept), self._progress.frames, self._progress.last)
                self._cache.put(self._plan.key, phrase)
        self.complete = True

    async def samples(self) -> Samples:
        """All of it at once: the chunks, joined."""
        return np.concatenate([chunk.samples async for chunk in self])

    def _note(self, chunk: AudioChunk) -> None:
        self._spoken = Spoken(chunk.text_end, chunk.start + len(chunk.samples))

    def close(self) -> None:
        """Free whatever the request holds: queue place, stage jobs, codec work. Does not wait."""
        if self._submission is not None and not self.complete:
            self._submission.cancel()
