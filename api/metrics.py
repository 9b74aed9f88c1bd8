"""Emission times of the streams and the engine's status → Prometheus metrics, one registry an app.

Times are what a listener with an ideal line would see: while a reader holds a stream up, its clock
stands still.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from api.disconnects import Disconnected

SAMPLE_RATE = 24_000
_REMEMBERED = 240  # streams that are over
_WINDOW_SECONDS = 10.0  # of audio, for the sliding RTF
_SECONDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
_RATIOS = (0.01, 0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Finished:
    """A stream that is over: when (on the metrics' clock), how, and its figures in seconds."""

    at: float
    outcome: str
    seconds: float
    ttfa: float | None
    rtf: float | None


class Metrics:
    """The app's metrics; ``clock`` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.recent: deque[Finished] = deque(maxlen=_REMEMBERED)
        self.live: dict[str, Meter] = {}  # by request id
        self.registry = CollectorRegistry()
        registry = self.registry
        self.requests = Counter(
            "tontaube_requests", "Speech requests by outcome", ["outcome"], registry=registry
        )
        self.cancellations = Counter(
            "tontaube_cancellations", "Streams left before their end", registry=registry
        )
        self.active = Gauge("tontaube_open_streams", "Streams with a client", registry=registry)
        self.ttfa = Histogram(
            "tontaube_first_audio_seconds",
            "From request to first audio",
            buckets=_SECONDS,
            registry=registry,
        )
        self.gaps = Histogram(
            "tontaube_chunk_gap_seconds",
            "Between two pieces of a stream",
            buckets=_SECONDS,
            registry=registry,
        )
        self.rtf = Histogram(
            "tontaube_stream_rtf",
            "Seconds of work per second of audio, of whole streams",
            buckets=_RATIOS,
            registry=registry,
        )
        self.window_rtf = Histogram(
            "tontaube_window_rtf",
            "The same over the last 10 s of audio, at every piece",
            buckets=_RATIOS,
            registry=registry,
        )
        self.underruns = Counter(
            "tontaube_underruns", "Times a listener ran dry", registry=registry
        )
        self.underrun_seconds = Counter(
            "tontaube_underrun_seconds", "How long listeners were dry", registry=registry
        )
        self.audio_seconds = Counter("tontaube_audio_seconds", "Audio emitted", registry=registry)
        self.characters = Counter("tontaube_characters", "Characters asked for", registry=registry)

    def render(self) -> bytes:
        """The text exposition format."""
        return generate_latest(self.registry)

    @contextmanager
    def stream(
        self, characters: int, dictated: bool = False, request: str | None = None
    ) -> Iterator[Meter]:
        """Measure one stream from here on, however it ends. Of a dictated one the pace is partly
        the client's, so that only its first audio is judged. ``request``: whose it is."""
        meter = Meter(self, dictated)
        if request is not None:
            self.live[request] = meter
        self.characters.inc(characters)
        self.active.inc()
        try:
            yield meter
        except (Disconnected, asyncio.CancelledError):
            meter.outcome = "cancelled"
            raise
        except Exception:
            meter.outcome = "failed"
            raise
        finally:
            if meter.outcome == "cancelled":
                self.cancellations.inc()
            if request is not None:
                self.live.pop(request, None)
            self.active.dec()
            self.requests.labels(meter.outcome).inc()
            rtf = None if dictated else meter.rtf
            self.recent.append(
                Finished(self.clock(), meter.outcome, meter.seconds, meter.ttfa, rtf)
            )
            if meter.rtf is not None and not dictated:
                self.rtf.observe(meter.rtf)


class Meter:
    """One stream's clock: ``emitted`` when a piece is there, ``sent`` when the reader took it."""

    def __init__(self, metrics: Metrics, dictated: bool = False) -> None:
        self._metrics = metrics
        self._dictated = dictated
        self._asked = False
        self._started = metrics.clock()
        self._held_up = 0.0  # seconds spent waiting for the reader
        self._emitted_at: float | None = None
        self._dry_at = 0.0  # when the listener has played everything
        self._recent: deque[tuple[float, float]] = deque()  # (waited, seconds of audio)
        self.outcome = "ok"
        self.voice: str | None = None
        self.samples = 0
        self.ttfa: float | None = None
        self.queue_position: Callable[[], int] = lambda: 0

    @property
    def seconds(self) -> float:
        """Of audio emitted."""
        return self.samples / SAMPLE_RATE

    @property
    def rtf(self) -> float | None:
        """Seconds from the request to the last piece per second of audio; None before any."""
        if self._emitted_at is None or self.samples == 0:
            return None
        return (self._emitted_at - self._started) / self.seconds

    def asked(self) -> None:
        """Note that a dictated stream has been given text: only now can audio be expected."""
        if not self._asked:
            self._asked = True
            self._started = self._now()

    def emitted(self, samples: int) -> None:
        """Note that a piece of audio is ready to be sent."""
        metrics, now = self._metrics, self._now()
        waited = now - (self._started if self._emitted_at is None else self._emitted_at)
        if self.ttfa is None:
            self.ttfa = waited
            self._dry_at = now
            metrics.ttfa.observe(waited)
        elif not self._dictated:
            metrics.gaps.observe(waited)
            if now > self._dry_at:
                metrics.underruns.inc()
                metrics.underrun_seconds.inc(now - self._dry_at)
                self._dry_at = now
            self._observe_window(waited, samples / SAMPLE_RATE)
        self._dry_at += samples / SAMPLE_RATE
        self._emitted_at = now
        self.samples += samples
        metrics.audio_seconds.inc(samples / SAMPLE_RATE)

    def sent(self) -> None:
        """Note that the piece emitted last has been taken by the reader."""
        if self._emitted_at is not None:
            self._held_up += self._now() - self._emitted_at

    def _now(self) -> float:
        return self._metrics.clock() - self._held_up

    def _observe_window(self, waited: float, seconds: float) -> None:
        self._recent.append((waited, seconds))
        while len(self._recent) > 1 and sum(audio for _, audio in self._recent) > _WINDOW_SECONDS:
            self._recent.popleft()
        audio = sum(audio for _, audio in self._recent)
        if audio > 0:
            self._metrics.window_rtf.observe(sum(wait for wait, _ in self._recent) / audio)
