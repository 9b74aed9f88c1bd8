"""What a request asks of the modules; the scheduler's session answers, tests have their own."""

from __future__ import annotations

from typing import Protocol

from tontaube.types import AudioChunk, Codes, Samples, StageJob


class Run(Protocol):
    """A job in a stage module."""

    at: float
    """For which second of the stream's audio it works: its urgency."""

    @property
    def codes(self) -> list[int]:
        """What it has given so far."""

    @property
    def finish(self) -> str | None:
        """How it ended, as in ``StageOutput``."""

    async def until(self, count: int | None = None) -> bool:
        """Wait for ``count`` codes, or the end; True if it has ended. Raises its error."""

    def close(self) -> None:
        """Forget the job, at once; harmless after its end."""


class Decoder(Protocol):
    """Codes of one stream → samples, as ``codec.decoder.StreamDecoder``."""

    def push(self, codes: Codes) -> Samples:
        """The next codes [4, n]; the samples that are certain by now."""

    def finish(self) -> Samples:
        """The rest."""


class Models(Protocol):
    """The stages, the codec and the reader, as one stream sees them."""

    def run(self, stage: int, job: StageJob, at: float) -> Run:
        """Queue a job for CB{stage}."""

    async def decode(self, decoder: Decoder, codes: Codes | None, at: float) -> Samples:
        """``push`` or, of None, ``finish``, where all model work runs."""

    async def emit(self, chunk: AudioChunk) -> None:
        """Hand audio to the reader; waits while the reader has too much untaken."""
