"""``python -m tontaube.bench load URL``: what listeners of a speech server go through, by rate.

Open loop: requests leave at random moments (Poisson) whatever has become of earlier ones, so that
a slow server cannot slow the load down. Any server with OpenAI's ``POST /audio/speech`` will do
that streams ``pcm``: 16-bit little-endian, mono.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx
import numpy as np

from tontaube.bench.listening import (
    Arrival,
    dryness,
    gaps,
    merged,
    onset,
    percentiles,
    window_rtfs,
)
from tontaube.errors import InvalidRequest

TEXTS = Path(__file__).parent / "texts" / "english.txt"
_FULL_SCALE = 32_768
_AT_ONCE = 0.002  # seconds; pieces closer than that are one, which the network cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked, and how the answers are judged. ``threshold`` is a sample's level in dB of
    full scale; ``client_buffer`` and ``window`` are seconds of audio."""

    url: str
    rates: tuple[float, ...] = (0.5, 1.0, 2.0)
    seconds: float = 60.0
    texts: tuple[str, ...] = ()
    model: str = "tontaube-v1"
    voice: str = "alloy"
    key: str | None = None
    sample_rate: int = 24_000
    threshold: float = -40.0
    client_buffer: float = 0.0
    window: float = 1.0
    timeout: float = 120.0
    seed: int = 0


@dataclass(slots=True)
class Listener:
    """One request: seconds from its dispatch to its first byte, to its first audible sample as
    heard by who plays at once, its pieces, and what went wrong."""

    asked: float
    first_byte: float | None = None
    audible: float | None = None
    arrivals: list[Arrival] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RateFigures:
    """All requests of one rate. Percentiles are over requests (``ttfb``, ``audible_ttfa``), or over
    all their pieces (``window_rtf``, ``gaps``); None where nothing was measured."""

    rate: float
    requests: int
    errors: dict[str, int]
    ttfb: dict[str, float] | None
    audible_ttfa: dict[str, float] | None
    window_rtf: dict[str, float] | None
    gaps: dict[str, float] | None
    underruns: int
    dry_streams: int
    dry_seconds: float
    audio_seconds: float
    wall_seconds: float

    def line(self) -> str:
        """As printed; times in milliseconds."""
        return (
            f"{self.rate:>6g}{self.requests:>6}{sum(self.errors.values()):>8}"
            f"{_ms(self.ttfb, 'p50'):>10}{_ms(self.ttfb, 'p95'):>7}"
            f"{_ms(self.audible_ttfa, 'p50'):>10}{_ms(self.audible_ttfa, 'p95'):>7}"
            f"{_ms(self.audible_ttfa, 'p99'):>7}{_ratio(self.window_rtf, 'p50'):>9}"
            f"{_ratio(self.window_rtf, 'p99'):>7}{_ms(self.gaps, 'p99'):>9}"
            f"{self.underruns:>11}{self.dry_streams:>9}"
        )


HEADER = (
    f"{'req/s':>6}{'reqs':>6}{'errors':>8}{'TTFB p50':>10}{'p95':>7}{'TTFA p50':>10}{'p95':>7}"
    f"{'p99':>7}{'RTF p50':>9}{'p99':>7}{'gap p99':>9}{'underruns':>11}{'streams':>9}"
)


def _ms(values: dict[str, float] | None, name: str) -> str:
    return f"{1e3 * values[name]:.0f}" if values else "-"


def _ratio(values: dict[str, float] | None, name: str) -> str:
    return f"{values[name]:.2f}" if values else "-"


def judge(
    load: Load, rate: float, listeners: Sequence[Listener], wall_seconds: float
) -> RateFigures:
    """Everything that can be said of the requests of one rate."""
    served = [one for one in listeners if one.arrivals]
    dry = [dryness(one.arrivals, load.client_buffer) for one in served]
    return RateFigures(
        rate=rate,
        requests=len(listeners),
        errors=dict(Counter(one.error for one in listeners if one.error is not None)),
        ttfb=percentiles([one.first_byte for one in served if one.first_byte is not None]),
        audible_ttfa=percentiles([one.audible for one in served if one.audible is not None]),
        window_rtf=percentiles([r for o in served for r in window_rtfs(o.arrivals, load.window)]),
        gaps=percentiles([gap for one in served for gap in gaps(one.arrivals)]),
        underruns=sum(one.underruns for one in dry),
        dry_streams=sum(one.underruns > 0 for one in dry),
        dry_seconds=sum(one.seconds for one in dry),
        audio_seconds=sum(piece.seconds for one in served for piece in one.arrivals),
        wall_seconds=wall_seconds,
    )


class Ear:
    """Bytes of one answer as they arrive → a Listener's moments. Times are since the dispatch."""

    def __init__(self, load: Load, listener: Listener) -> None:
        self._rate = load.sample_rate
        self._threshold = round(_FULL_SCALE * 10 ** (load.threshold / 20))
        self._listener = listener
        self._half = b""  # of a sample
        self._samples = 0

    def hear(self, data: bytes, now: float) -> None:
        """The next bytes."""
        listener = self._listener
        if not data:
            return
        if listener.first_byte is None:
            listener.first_byte = now
        data = self._half + data
        whole = len(data) & ~1
        self._half = data[whole:]
        samples = np.frombuffer(data[:whole], "<i2")
        if not len(samples):
            return
        first = listener.arrivals[0].at if listener.arrivals else now
        loud = onset(samples, self._threshold) if listener.audible is None else None
        if loud is not None:  # it is played when it is there and all before it has been played
            listener.audible = max(now, first + (self._samples + loud) / self._rate)
        self._samples += len(samples)
        listener.arrivals.append(Arrival(now, len(samples) / self._rate))


class Generator:
    """Sends the load. ``clock`` and the client's transport are for tests."""

    def __init__(
        self, load: Load, client: httpx.AsyncClient, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._load = load
        self._client = client
        self._clock = clock
        self._address = speech_address(load.url)

    async def run(self, rate: float) -> RateFigures:
        """All requests of one rate, to the end of the last one."""
        load = self._load
        random = np.random.default_rng((load.seed, round(1_000 * rate)))
        start = self._clock()
        tasks: list[asyncio.Task[Listener]] = []
        moment = float(random.exponential(1 / rate))
        while moment < load.seconds:
            text = load.texts[int(random.integers(len(load.texts)))]
            await asyncio.sleep(max(0.0, start + moment - self._clock()))
            tasks.append(asyncio.create_task(self.listen(text)))
            moment += float(random.exponential(1 / rate))
        listeners = await asyncio.gather(*tasks)
        return judge(load, rate, listeners, self._clock() - start)

    async def listen(self, text: str) -> Listener:
        """One request; never raises what the network or the server do wrong."""
        load = self._load
        asked = self._clock()
        listener = Listener(asked)
        ear = Ear(load, listener)
        body = {"model": load.model, "voice": load.voice, "input": text, "response_format": "pcm"}
        headers = {"authorization": f"Bearer {load.key}"} if load.key else {}
        try:
            async with self._client.stream(
                "POST", self._address, json=body, headers=headers
            ) as answer:
                if answer.status_code != 200:
                    listener.error = f"HTTP {answer.status_code}"
                    return listener
                async for data in answer.aiter_bytes():
                    ear.hear(data, self._clock() - asked)
        except httpx.HTTPError as error:
            listener.error = type(error).__name__
        if listener.error is None and not listener.arrivals:
            listener.error = "no audio"
        listener.arrivals = merged(listener.arrivals, _AT_ONCE)
        return listener


def speech_address(url: str) -> str:
    """A base URL, with or without its ``/v1`` → where speech is asked for. Raises
    InvalidRequest."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidRequest(f"{url!r} is no URL: {error}", "url") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidRequest(f"{url!r} is no http URL", "url")
    path = parsed.path.rstrip("/") or "/v1"
    return str(parsed.copy_with(path=f"{path}/audio/speech"))


def read_texts(path: Path) -> tuple[str, ...]:
    """One text a line. Raises InvalidRequest."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path} cannot be read: {error}", "texts") from error
    texts = tuple(line.strip() for line in lines if line.strip())
    if not texts:
        raise InvalidRequest(f"there is no text in {path}", "texts")
    return texts


def client(load: Load) -> httpx.AsyncClient:
    """As many connections as the load needs."""
    return httpx.AsyncClient(
        timeout=httpx.Timeout(load.timeout, connect=10.0), limits=httpx.Limits(max_connections=None)
    )


async def _measure(load: Load) -> list[RateFigures]:
    rows = []
    async with client(load) as line:
        generator = Generator(load, line)
        print(HEADER)
        for rate in load.rates:
            rows.append(await generator.run(rate))
            print(rows[-1].line(), flush=True)
    return rows


def run(load: Load, out: Path | None = None, plot: Path | None = None) -> list[RateFigures]:
    """Measure, print a table, and write JSON and a plot where asked to. Raises Unavailable if the
    plot cannot be drawn here, before anything is measured."""
    if plot is not None:
        from tontaube.bench import plots

        plots.check()
    rows = asyncio.run(_measure(load))
    for row in rows:
        for error, count in row.errors.items():
            print(f"{row.rate:g} req/s: {count} x {error}")
    if out is not None:
        about = asdict(load) | {"key": None, "texts": len(load.texts)}
        found = {"load": about, "rates": [asdict(row) for row in rows]}
        out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    if plot is not None:
        plots.load_plot(rows, plot)
    return rows
