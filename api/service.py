"""What every route works with, and the one way from a request to encoded audio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from api.encoders import open_encoder
from api.errors import ModelNotFound
from api.limits import Limits
from api.metrics import Meter, Metrics
from api.models import Models
from api.ports import SpeechEngine, SpeechStream
from api.records import Record
from api.schemas import MAX_CHARACTERS, Speaking, require_speakable
from tontaube.errors import Busy, GenerationFailed, Unavailable
from tontaube.types import AudioChunk, SpeechRequest


@dataclass(frozen=True, slots=True)
class Service:
    """One app's engine, limits and metrics."""

    engine: SpeechEngine
    metrics: Metrics
    models: Models
    limits: Limits = field(default_factory=Limits)
    max_characters: int = MAX_CHARACTERS
    log_text: bool = False

    @property
    def sample_rate(self) -> int:
        return self.engine.description.sample_rate

    def require_ready(self) -> None:
        """Raises Busy while the model is being loaded, Unavailable when it has failed for good."""
        failure = self.engine.status().failure
        if failure is not None:
            raise Unavailable(failure)
        if not self.engine.ready:
            raise Busy("the model is being loaded; try again in a moment", retry_after=5)

    def require_model(self, model: str) -> None:
        """Raises ModelNotFound."""
        if not self.models.serves(model):
            raise ModelNotFound(model, self.models.ids)

    def checked(self, wish: Speaking, text: str | None) -> SpeechRequest:
        """The domain's request; ``text`` None: it will be dictated. Raises what is wrong with it
        that can be known beforehand."""
        self.require_model(wish.model)
        if text is not None:
            require_speakable(text, self.max_characters)
        request = wish.request(text or "", self.styles)
        self.engine.voices.get(request.voice)
        self.require_ready()
        return request

    @property
    def styles(self) -> Sequence[str]:
        return self.engine.description.styles


class Delivery(Protocol):
    """Where the encoded pieces of one stream go."""

    def begin(self, stream: SpeechStream) -> None:
        """The stream whose pieces will come; it may still wait for its turn."""

    async def piece(self, chunk: AudioChunk, data: bytes) -> None:
        """Bytes that became ready with ``chunk`` (they lag behind it by the codec's delay)."""

    async def end(self, tail: bytes, stream: SpeechStream) -> None:
        """The last bytes of a stream that was spoken to its end."""

    async def failed(self, error: Exception) -> None:
        """The stream broke off; raises unless the failure could be told on the way."""


@dataclass(frozen=True, slots=True)
class Job:
    """A request and the file it is to become: a key of ``encoders.FORMATS``, whole or streamed."""

    request: SpeechRequest
    encoding: str
    whole: bool = False


async def speak(service: Service, job: Job, delivery: Delivery, meter: Meter) -> None:
    """Generate, encode and deliver one request; cancelling it frees everything.

    The last bytes leave when everything is free already: a server reports the end of an answer in
    the same words as a client that went away.
    """
    try:
        async with service.engine.stream(job.request) as stream:
            meter.voice = stream.voice.id
            meter.queue_position = lambda: stream.queue_position
            delivery.begin(stream)
            tail = await _encode(service, job, stream, delivery, meter)
    except Exception as error:
        meter.outcome = "failed"
        await delivery.failed(error)
        return
    await delivery.end(tail, stream)


async def _encode(
    service: Service, job: Job, stream: SpeechStream, delivery: Delivery, meter: Meter
) -> bytes:
    """Deliver all but the last bytes, which it returns.

    Encoding is done in threads: it would hold up everyone's event loop.
    """
    encoder = await asyncio.to_thread(open_encoder, job.encoding, service.sample_rate, job.whole)
    try:
        async for chunk in stream:
            data = await asyncio.to_thread(encoder.encode, chunk.samples)
            meter.emitted(len(chunk.samples))
            await delivery.piece(chunk, data)
            meter.sent()
        if meter.samples == 0:
            raise GenerationFailed("the model gave no audio for this text")
        return await asyncio.to_thread(encoder.finish)
    finally:
        await asyncio.to_thread(encoder.close)


def note(record: Record, meter: Meter, job: Job, service: Service) -> None:
    """Put a stream's figures into its request's log line."""
    record.characters = len(job.request.text)
    record.voice = meter.voice
    record.seconds, record.ttfa, record.rtf = meter.seconds, meter.ttfa, meter.rtf
    if service.log_text:
        record.text = job.request.text
