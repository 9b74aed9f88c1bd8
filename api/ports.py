"""What the front doors ask of an engine; ``tontaube.engine.Engine`` gives it, tests give a fake."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tontaube.bundle import Description
from tontaube.types import AudioChunk, Samples, Segment, SpeechRequest, Voice


class Usage(Protocol):
    """Tokens of a stream so far: characters read, codes written."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


class Spoken(Protocol):
    """How far the emitted audio reaches: characters of the request's text, samples at 24 kHz."""

    @property
    def characters(self) -> int: ...
    @property
    def samples(self) -> int: ...


class SpeechStream(Protocol):
    """One request being spoken; iterating gives its audio in order."""

    @property
    def segments(self) -> Sequence[Segment]: ...
    @property
    def voice(self) -> Voice: ...
    @property
    def language(self) -> str: ...
    @property
    def style(self) -> str: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def queue_position(self) -> int:
        """Its place in the waiting room, from 1; 0 once its turn has come."""

    def spoken(self) -> Spoken: ...
    def __aiter__(self) -> AsyncIterator[AudioChunk]: ...


class ModuleStatus(Protocol):
    """One of CB0..CB3 and the codec: its work, and its last steps (seconds, sequences)."""

    @property
    def name(self) -> str: ...
    @property
    def waiting(self) -> int: ...
    @property
    def running(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def step_seconds(self) -> float: ...
    @property
    def step_seconds_p99(self) -> float: ...
    @property
    def batch(self) -> float: ...
    @property
    def busy_seconds(self) -> float: ...


class Status(Protocol):
    """A snapshot of an engine; ``failure`` says why it cannot speak any more."""

    @property
    def engine(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def ready(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...
    @property
    def queue_length(self) -> int: ...
    @property
    def active_streams(self) -> int: ...
    @property
    def stream_limit(self) -> int: ...
    @property
    def modules(self) -> Sequence[ModuleStatus]: ...
    @property
    def cancellations(self) -> int: ...
    @property
    def underruns(self) -> int: ...
    @property
    def emitted_seconds(self) -> float: ...
    @property
    def phrase_hits(self) -> int: ...
    @property
    def phrase_misses(self) -> int: ...
    @property
    def voice_hits(self) -> int: ...
    @property
    def voice_misses(self) -> int: ...


class Voices(Protocol):
    """The voices that can be asked for; ids are safe in paths and headers."""

    def list(self) -> Sequence[Voice]: ...

    def get(self, name: str | None) -> Voice:
        """By id, name or alias; None: the default one. Raises UnknownVoice."""

    async def read(self, audio: bytes) -> Samples:
        """What ``add`` would use of a recording: samples at the model's rate. Raises
        InvalidRequest."""

    async def add(
        self,
        name: str,
        audio: bytes,
        consent: str,
        language: str | None = None,
        style: str | None = None,
    ) -> Voice:
        """Keep a voice made of a recording. Raises InvalidRequest for what cannot be used."""

    def delete(self, id: str) -> None:
        """Raises UnknownVoice, or InvalidRequest for one that ships with the bundle."""


class SpeechEngine(Protocol):
    """The one thing behind all routes."""

    @property
    def ready(self) -> bool: ...
    @property
    def description(self) -> Description: ...
    @property
    def voices(self) -> Voices: ...

    def status(self) -> Status: ...

    def stream(
        self, request: SpeechRequest, text: AsyncIterable[str] | None = None
    ) -> AbstractAsyncContextManager[SpeechStream]:
        """Speak ``request``; leaving the context frees everything. With ``text`` the words come
        from there, each piece a clause or a sentence, and ``request.text`` is ignored; segments
        count in the pieces joined."""
