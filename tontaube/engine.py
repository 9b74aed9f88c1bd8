"""The owner of everything: a bundle, its four stages and codec, the worker thread, the voices.

``Engine.load(settings)`` → ``engine.stream(request)`` → audio chunks. It knows no front door.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from tontaube.assembly import Machinery, assemble
from tontaube.bundle import Bundle, Description
from tontaube.cache import PhraseCache
from tontaube.config import Settings
from tontaube.dictation import Dictation
from tontaube.errors import InvalidRequest, TontaubeError
from tontaube.pipeline import Speech, in_order
from tontaube.plan import Plan, Planner
from tontaube.scheduling.admission import Admission, StreamLimit
from tontaube.scheduling.outbox import Outbox
from tontaube.scheduling.scheduler import Scheduler
from tontaube.scheduling.session import Limits, Session
from tontaube.scheduling.steps import LaneStatus
from tontaube.scheduling.worker import Worker
from tontaube.stream import SpeechStream
from tontaube.types import Codes, Samples, SpeechRequest
from tontaube.voices import VoiceLibrary, VoiceStore

log = logging.getLogger(__name__)

_WARM_UP = "This is the first sentence I say."


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What can be seen of a running engine."""

    bundle: str
    revision: str
    engine: str
    device: str
    ready: bool
    failure: str | None
    queue_length: int
    active_streams: int
    stream_limit: int
    modules: tuple[LaneStatus, ...]  # CB0..CB3 and the codec
    cancellations: int
    underruns: int
    emitted_seconds: float
    phrase_hits: int
    phrase_misses: int
    voice_hits: int
    voice_misses: int


class Engine:
    """Speaks. Its methods are for one event loop; the model works in a thread of its own."""

    def __init__(self, bundle: Bundle, machinery: Machinery, settings: Settings) -> None:
        """See ``load``; ``start`` must follow."""
        self.settings = settings
        self.description: Description = bundle.description
        self._warm = False
        self._machinery = machinery
        self._planner = Planner(machinery.grammar, settings)
        self._phrases = PhraseCache(settings.phrase_cache_bytes)
        self._worker = Worker(self._make_scheduler)
        self._scheduler: Scheduler
        self._ids = itertools.count()
        store = VoiceStore(settings.data_dir / "voices", settings.max_voices, settings.voice_cache)
        self.voices = VoiceLibrary(bundle, store, machinery.read_reference, self._encode)

    @classmethod
    async def load(cls, settings: Settings) -> Engine:
        """Open the model and start the worker. Raises BundleError, Unavailable."""
        log.info("settings: %s", settings.describe())
        bundle, machinery = await asyncio.to_thread(assemble, settings)
        engine = cls(bundle, machinery, settings)
        await engine.start()
        return engine

    async def start(self) -> None:
        """Start the worker thread and read the voices."""
        self._scheduler = await self._worker.start()
        await self.voices.open()

    async def warm_up(self) -> None:
        """Speak a sentence for real; the engine is ready when it has been heard."""
        if self.settings.warm_up:
            async with self.stream(SpeechRequest(text=_WARM_UP, seed=0)) as stream:
                samples = await stream.samples()
            seconds = len(samples) / self.description.sample_rate
            log.info("warm: %.1f s of speech", seconds)
        self._warm = True

    @property
    def ready(self) -> bool:
        """Warmed up, and able to make steps."""
        return self._warm and self._scheduler.modules.failure is None

    @asynccontextmanager
    async def stream(
        self, request: SpeechRequest, text: AsyncIterable[str] | None = None
    ) -> AsyncIterator[SpeechStream]:
        """Speak ``request``; iterate what this gives. Leaving the context frees everything at once.

        With ``text``, the words come from there as they are written, each piece a clause or a
        sentence, and ``request.text`` is ignored. Raises InvalidRequest, Busy, Unavailable here;
        the iteration raises GenerationFailed, DeadlineExceeded, TontaubeError.
        """
        voice = await self.voices.ready(request.voice)
        plan = self._planner.plan(request, voice, dictated=text is not None)
        if text is None:
            stream = self._whole(plan)
            try:
                yield stream
            finally:
                stream.close()
            return
        dictation = Dictation(self._scheduler.loop, self.settings.text_timeout)
        stream = self._submit(plan, dictation)
        pump = asyncio.create_task(self._dictate(text, plan, stream, dictation))
        try:
            yield stream
        finally:
            stream.close()
            pump.cancel()

    def _whole(self, plan: Plan) -> SpeechStream:
        if plan.key is not None:
            phrase = self._phrases.get(plan.key)
            if phrase is not None:
                return SpeechStream(plan, phrase, None, phrase)
        return self._submit(plan, None)

    def _submit(self, plan: Plan, dictation: Dictation | None) -> SpeechStream:
        """Queue a plan. Raises Busy, Unavailable."""
        speech = Speech(
            f"s{next(self._ids)}", plan.reading, plan.delivery, self._machinery.new_decoder
        )
        outbox = Outbox(self._scheduler.loop, self.settings.ahead_seconds)

        async def work(session: Session) -> None:
            texts = in_order(plan.segments) if dictation is None else dictation.texts()
            await speech.speak(texts, session)

        submission = self._scheduler.submit(work, outbox, plan.delivery.sample_rate)
        return SpeechStream(plan, outbox, submission, speech, self._phrases)

    async def _dictate(
        self,
        text: AsyncIterable[str],
        plan: Plan,
        stream: SpeechStream,
        dictation: Dictation,
    ) -> None:
        """Take pieces of text as they come; their segments count in the text as a whole."""
        length = 0
        first = 1 if plan.reading.continues else 0
        error: Exception | None = None
        try:
            async for piece in text:
                if length + len(piece) > self.settings.max_characters:
                    limit = self.settings.max_characters
                    raise InvalidRequest(f"the text is longer than {limit} characters", "text")
                for segment in self._planner.segments(piece, plan.language, plan.normalize):
                    placed = replace(
                        segment,
                        index=first + len(stream.segments),
                        start=length + segment.start,
                        end=length + segment.end,
                        last=False,
                    )
                    stream.segments.append(placed)
                    dictation.put(placed)
                length += len(piece)
        except TontaubeError as known:
            error = known
        except Exception as unknown:
            log.exception("a dictated text broke off")
            error = TontaubeError(f"the text broke off: {type(unknown).__name__}: {unknown}")
        dictation.end(error)

    def status(self) -> EngineStatus:
        """A snapshot."""
        scheduler, modules = self._scheduler, self._scheduler.modules
        return EngineStatus(
            bundle=self.description.id,
            revision=self.description.revision,
            engine=self._machinery.kind,
            device=self._machinery.device,
            ready=self.ready,
            failure=str(modules.failure) if modules.failure else None,
            queue_length=scheduler.admission.waiting,
            active_streams=scheduler.admission.active,
            stream_limit=scheduler.admission.limit.value,
            modules=scheduler.status(),
            cancellations=modules.cancelled,
            underruns=modules.underruns,
            emitted_seconds=modules.emitted_seconds,
            phrase_hits=self._phrases.hits,
            phrase_misses=self._phrases.misses,
            voice_hits=self.voices.hits,
            voice_misses=self.voices.misses,
        )

    async def close(self) -> None:
        """End all streams and the worker thread."""
        self._warm = False
        await self._worker.stop()
        self._machinery.close()

    def _make_scheduler(self) -> Scheduler:
        settings = self.settings
        limit = StreamLimit(settings.max_streams, settings.max_streams, settings.adjust_streams)
        limits = Limits(
            max_batch=settings.max_batch,
            wait_timeout=settings.wait_timeout,
            progress_timeout=settings.progress_timeout,
            reader_timeout=settings.reader_timeout,
        )
        admission = Admission(limit, settings.waiting_room)
        return Scheduler(self._machinery.stages, admission, limits, decode=self._machinery.decode)

    async def _encode(self, samples: Samples) -> Codes:
        return await self._scheduler.compute(lambda: self._machinery.encode(samples))
