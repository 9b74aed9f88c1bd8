"""A fake engine for the front doors: tones instead of speech, and counters of what was freed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import httpx
import numpy as np
from fastapi import FastAPI

from api.limits import Limits
from api.server import create_app
from api.serving import server_of
from tontaube.bundle import CodecPart, Description, VoicePart
from tontaube.config import Settings
from tontaube.errors import InvalidRequest, TontaubeError, UnknownVoice
from tontaube.types import AudioChunk, Samples, Segment, SpeechRequest, Voice

RATE = 24_000
ALIASES = ("alloy", "ash", "ballad", "coral", "echo", "fable", "onyx", "nova", "sage", "shimmer")


def description() -> Description:
    return Description(
        id="fake-1",
        revision="1",
        license="Apache-2.0",
        codec=CodecPart(kind="spectral", weights="codec", features="logmel"),
        languages={"english": "en", "german": "de"},
        styles=("audiobook", "conversational", "agentic"),
        default_voice="anna",
        voices=(VoicePart(id="anna", name="Anna", language="english", style="conversational"),),
        voice_aliases=dict.fromkeys(ALIASES, "anna"),
    )


@dataclass
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Spoken:
    characters: int
    samples: int


@dataclass(frozen=True)
class Module:
    name: str = "cb0"
    waiting: int = 1
    running: int = 2
    steps: int = 3
    step_seconds: float = 0.01
    step_seconds_p99: float = 0.02
    batch: float = 1.5
    busy_seconds: float = 0.03


@dataclass(frozen=True)
class Status:
    ready: bool
    failure: str | None
    active_streams: int
    engine: str = "fake"
    device: str = "cpu"
    queue_length: int = 5
    stream_limit: int = 16
    modules: tuple[Module, ...] = (Module(),)
    cancellations: int = 0
    underruns: int = 0
    emitted_seconds: float = 0.0
    phrase_hits: int = 7
    phrase_misses: int = 0
    voice_hits: int = 0
    voice_misses: int = 0


class FakeVoices:
    """Voices in a dict; a recording that starts with ``bad`` is refused."""

    def __init__(self) -> None:
        codes = np.zeros((4, 0), np.int64)
        self._voices = {"anna": Voice("anna", "Anna", "english", "conversational", codes)}
        self.consents: dict[str, str] = {}

    def list(self) -> list[Voice]:
        return list(self._voices.values())

    def get(self, name: str | None) -> Voice:
        name = "anna" if name is None or name in ALIASES else name
        if name not in self._voices:
            raise UnknownVoice(name, [*self._voices, *ALIASES])
        return self._voices[name]

    async def read(self, audio: bytes) -> Samples:
        if audio.startswith(b"bad"):
            raise InvalidRequest("the recording cannot be read", "audio_sample")
        return tone("recording", 0.2)

    async def add(
        self,
        name: str,
        audio: bytes,
        consent: str,
        language: str | None = None,
        style: str | None = None,
    ) -> Voice:
        await self.read(audio)
        voice = replace(
            self._voices["anna"],
            id=f"voice-{len(self._voices)}",
            name=name,
            language=language or "english",
            style=style or "conversational",
        )
        self._voices[voice.id] = voice
        self.consents[voice.id] = consent
        return voice

    def delete(self, id: str) -> None:
        if id == "anna":
            raise InvalidRequest("this voice belongs to the bundle", "voice")
        del self._voices[id]


@dataclass
class Behaviour:
    """How the fake speaks: ``fail_after`` chunks with ``error``; a ``pause`` before each chunk."""

    seconds_per_character: float = 0.01
    chunk_seconds: float = 0.4
    pause: float = 0.0
    error: Exception | None = None
    fail_after: int | None = None


class FakeStream:
    def __init__(
        self, request: SpeechRequest, text: AsyncIterable[str] | None, engine: FakeEngine
    ) -> None:
        self._request, self._text, self._engine = request, text, engine
        self.voice = engine.voices.get(request.voice)
        self.language = request.language or self.voice.language
        self.style = request.style or self.voice.style
        self.segments: list[Segment] = []
        self.usage = Usage()
        self.queue_position = 0
        self._samples = 0
        self._end = 0

    def spoken(self) -> Spoken:
        return Spoken(self._end, self._samples)

    async def __aiter__(self) -> AsyncIterator[AudioChunk]:
        start = 0
        async for piece in self._text or once(self._request.text):
            segment = Segment(len(self.segments), piece.strip(), start, start + len(piece), False)
            start += len(piece)
            self.segments.append(segment)
            self.usage.input_tokens += len(piece)
            async for chunk in self._speak(segment):
                yield chunk

    async def _speak(self, segment: Segment) -> AsyncIterator[AudioChunk]:
        how = self._engine.behaviour
        seconds = how.seconds_per_character / self._request.speed
        length = tone_length(segment.text, seconds)
        size = round(how.chunk_seconds * RATE)
        for begin in range(0, length, size):
            if how.fail_after is not None and self._samples >= how.fail_after * size:
                raise how.error or RuntimeError("secret words of a traceback")
            await asyncio.sleep(how.pause)
            piece = tone(segment.text, seconds, begin, begin + size)
            share = min(1.0, (begin + size) / length)
            self._end = segment.start + round(share * (segment.end - segment.start))
            chunk = AudioChunk(piece, self._samples, segment, self._end)
            self._samples += len(piece)
            self.usage.output_tokens += 4 * -(-len(piece) // 1_920)
            self._engine.chunks += 1
            yield chunk


async def once(text: str) -> AsyncIterator[str]:
    yield text


def tone_length(text: str, seconds_per_character: float) -> int:
    return round(len(text) * seconds_per_character * RATE)


def tone(
    text: str, seconds_per_character: float, begin: int = 0, end: int | None = None
) -> Samples:
    """Samples ``begin`` to ``end`` of a tone whose length and pitch tell the text."""
    length = tone_length(text, seconds_per_character)
    time = np.arange(begin, length if end is None else min(end, length)) / RATE
    pitch = 200 + sum(text.encode("utf-8", "surrogatepass")[:1_000]) % 200
    return (0.3 * np.sin(2 * np.pi * pitch * time)).astype(np.float32)


@dataclass
class FakeEngine:
    """Counts the streams that are open and those that were left before their end."""

    behaviour: Behaviour = field(default_factory=Behaviour)
    voices: FakeVoices = field(default_factory=FakeVoices)
    description: Description = field(default_factory=description)
    ready: bool = True
    failure: str | None = None
    refuse: TontaubeError | None = None
    open: int = 0
    opened: int = 0
    chunks: int = 0
    requests: list[SpeechRequest] = field(default_factory=list)

    def status(self) -> Status:
        return Status(self.ready, self.failure, active_streams=self.open)

    @asynccontextmanager
    async def stream(
        self, request: SpeechRequest, text: AsyncIterable[str] | None = None
    ) -> AsyncIterator[FakeStream]:
        self.requests.append(request)
        if self.refuse is not None:
            raise self.refuse
        if request.language is not None:
            self.description.language_named(request.language)
        if request.style is not None:
            self.description.style_named(request.style)
        stream = FakeStream(request, text, self)
        self.open += 1
        self.opened += 1
        try:
            yield stream
        finally:
            await asyncio.sleep(0)  # an exit that awaits must be possible
            self.open -= 1


SPEECH = {"model": "tts-1", "input": "Hello there, how are you?", "response_format": "pcm"}


def app_of(engine: FakeEngine, limits: Limits | None = None, **settings: object) -> FastAPI:
    """Without the page, unless ``ui`` asks for it."""
    return create_app(engine, Settings(**({"ui": False} | settings)), limits)


@asynccontextmanager
async def client_of(
    engine: FakeEngine, limits: Limits | None = None, **settings: object
) -> AsyncIterator[httpx.AsyncClient]:
    """A client that calls the app directly, without a network."""
    transport = httpx.ASGITransport(app_of(engine, limits, **settings))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


@asynccontextmanager
async def serving(
    engine: FakeEngine, limits: Limits | None = None, **settings: object
) -> AsyncIterator[str]:
    """A real server on a loopback port, in this event loop; gives its address."""
    async with serving_app(app_of(engine, limits, **settings), limits) as url:
        yield url


@asynccontextmanager
async def serving_app(app: FastAPI, limits: Limits | None = None) -> AsyncIterator[str]:
    """The same for any app."""
    server = server_of(app, limits, port=0, log_level="critical")
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task


async def freed(engine: FakeEngine) -> None:
    """Wait until no stream is open; the test's own time limit is the deadline."""
    await until(lambda: not engine.open)


async def until(condition: Callable[[], bool]) -> None:
    """Look again and again; there is nothing to be notified by."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
