"""The load generator: what listeners go through, as arithmetic and against a server with a tone."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tontaube.bench.listening import (
    Arrival,
    dryness,
    gaps,
    merged,
    onset,
    percentiles,
    window_rtfs,
)
from tontaube.bench.load import (
    TEXTS,
    Ear,
    Generator,
    Listener,
    Load,
    judge,
    read_texts,
    run,
    speech_address,
)
from tontaube.errors import InvalidRequest

# Arithmetic --------------------------------------------------------------------------------------


def test_underruns_with_and_without_a_buffer() -> None:
    pieces = [Arrival(1.0, 0.5), Arrival(1.4, 0.5), Arrival(2.5, 1.0), Arrival(3.0, 1.0)]
    at_once = dryness(pieces)
    assert at_once.underruns == 1 and at_once.seconds == pytest.approx(0.5)  # dry from 2.0 on
    assert dryness(pieces, client_buffer=0.6).underruns == 1  # starts at 1.4, dry at 2.4
    assert dryness(pieces, client_buffer=1.5).underruns == 0  # starts at 2.5
    assert dryness(pieces, client_buffer=60.0).underruns == 0  # starts when everything is there
    assert dryness([]).underruns == 0


pieces_of_a_stream = st.lists(
    st.tuples(st.floats(0, 3), st.floats(0.01, 3)), min_size=1, max_size=12
).map(
    lambda steps: [
        Arrival(sum(wait for wait, _ in steps[: n + 1]), seconds)
        for n, (_, seconds) in enumerate(steps)
    ]
)


@given(pieces=pieces_of_a_stream, buffer=st.floats(0, 5))
def test_playing_ends_when_all_was_waited_for_and_played(
    pieces: list[Arrival], buffer: float
) -> None:
    dry = dryness(pieces)
    total = sum(piece.seconds for piece in pieces)
    # The last piece cannot have been played before it arrived.
    assert pieces[0].at + total + dry.seconds >= pieces[-1].at + pieces[-1].seconds - 1e-9
    assert (dry.underruns == 0) == (dry.seconds == 0.0)
    assert dryness(pieces, buffer).seconds <= dry.seconds + 1e-9


def test_windows_gaps_and_merging() -> None:
    pieces = [Arrival(5.0, 1.0), Arrival(5.5, 1.0), Arrival(6.5, 1.0), Arrival(6.6, 0.2)]
    assert gaps(pieces) == pytest.approx([0.5, 1.0, 0.1])
    assert window_rtfs(pieces, 1.0) == pytest.approx([0.5, 1.0, 1.1 / 1.2])
    assert window_rtfs(pieces, 2.0) == pytest.approx([0.5, 0.75, 1.6 / 2.2])
    assert window_rtfs(pieces[:1], 1.0) == []
    cut = [Arrival(1.0, 0.3), Arrival(1.001, 0.2), Arrival(1.002, 0.1), Arrival(1.5, 0.1)]
    assert merged(cut, 0.0015) == [Arrival(1.0, pytest.approx(0.6)), Arrival(1.5, 0.1)]
    assert percentiles([]) is None
    assert percentiles([3.0]) == {"p50": 3.0, "p95": 3.0, "p99": 3.0}


def test_onset_of_sound() -> None:
    quiet = np.array([0, 5, -7, 300, -32_768], np.int16)
    assert onset(quiet, 10) == 3
    assert onset(quiet, 1_000) == 4
    assert onset(quiet[:3], 10) is None


@given(cuts=st.lists(st.integers(0, 4_000), max_size=8))
def test_an_ear_counts_samples_however_the_bytes_are_cut(cuts: list[int]) -> None:
    data = struct.pack("<2000h", *[0] * 1_500, *[9_000] * 500)
    listener = Listener(0.0)
    ear = Ear(Load(url="http://unused", sample_rate=1_000), listener)
    edges = sorted({0, len(data), *cuts})
    for begin, end in pairwise(edges):
        ear.hear(data[begin:end], 0.25)
    assert sum(piece.seconds for piece in listener.arrivals) == pytest.approx(2.0)
    assert listener.first_byte == 0.25
    assert listener.audible == pytest.approx(0.25 + 1.5)  # it is played after the silence


def test_figures_of_a_rate() -> None:
    heard = Listener(0.0, 0.1, 0.2, [Arrival(0.1, 1.0), Arrival(2.1, 1.0)])
    refused = Listener(0.0, error="HTTP 429")
    row = judge(Load(url="http://unused"), 2.0, [heard, refused], 3.0)
    assert (row.requests, row.errors, row.underruns) == (2, {"HTTP 429": 1}, 1)
    assert row.dry_seconds == pytest.approx(1.0)
    assert row.audible_ttfa == {"p50": 0.2, "p95": 0.2, "p99": 0.2}
    assert "-" in judge(Load(url="http://unused"), 2.0, [refused], 3.0).line()


def test_addresses() -> None:
    assert speech_address("http://localhost:8000") == "http://localhost:8000/v1/audio/speech"
    assert speech_address("https://x.example/v1/") == "https://x.example/v1/audio/speech"
    for wrong in ("localhost:8000", "ftp://x", "http://"):
        with pytest.raises(InvalidRequest):
            speech_address(wrong)


def test_texts(tmp_path: Path) -> None:
    assert len(read_texts(TEXTS)) > 10
    (tmp_path / "empty").write_text("\n \n")
    for wrong in ("empty", "absent"):
        with pytest.raises(InvalidRequest):
            read_texts(tmp_path / wrong)


# Against a server --------------------------------------------------------------------------------

RATE, PIECE = 8_000, 800  # samples
TONE = b"".join(
    struct.pack("<h", round(9_000 * math.sin(0.3 * n)) if n >= PIECE // 2 else 0)
    for n in range(4 * PIECE)
)


async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One answer: half a piece of silence, then a tone; what the text says goes wrong."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    body = json.loads(await reader.readexactly(length))
    assert head.startswith(b"POST /v1/audio/speech ") and body["response_format"] == "pcm"
    text = body["input"]
    status = b"503 Service Unavailable" if text == "refuse" else b"200 OK"
    writer.write(b"HTTP/1.1 " + status + b"\r\ntransfer-encoding: chunked\r\n\r\n")
    if text not in ("refuse", "nothing"):
        for begin in range(0, len(TONE), 2 * PIECE):
            part = TONE[begin : begin + 2 * PIECE]
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
            if text == "break":
                writer.close()
                return
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    writer.close()


@asynccontextmanager
async def tone_server() -> AsyncIterator[str]:
    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def load(url: str, *texts: str, rate: float = 40.0) -> Load:
    return Load(url=url, rates=(rate,), seconds=0.3, texts=texts, sample_rate=RATE)


async def test_a_tone_is_heard() -> None:
    async with tone_server() as url, httpx.AsyncClient() as line:
        row = await Generator(load(url, "a tone"), line).run(40.0)
    assert row.requests > 2 and not row.errors
    assert row.audio_seconds == pytest.approx(row.requests * 4 * PIECE / RATE)
    assert row.ttfb is not None and row.audible_ttfa is not None
    silence = PIECE / 2 / RATE
    assert row.audible_ttfa["p50"] == pytest.approx(row.ttfb["p50"] + silence, abs=0.02)


@pytest.mark.parametrize(
    ("text", "error"),
    [("refuse", "HTTP 503"), ("nothing", "no audio"), ("break", "RemoteProtocolError")],
)
async def test_what_goes_wrong_is_counted(text: str, error: str) -> None:
    async with tone_server() as url, httpx.AsyncClient() as line:
        listener = await Generator(load(url, text), line).listen(text)
    assert listener.error == error


async def test_nobody_listens_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with httpx.AsyncClient() as line:
        listener = await Generator(load(f"http://127.0.0.1:{port}", "x"), line).listen("x")
    assert listener.error == "ConnectError"


async def test_everything_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    async with tone_server() as url:
        wanted = load(url, "a tone", "refuse")
        out, plot = tmp_path / "load.json", tmp_path / "load.png"
        rows = await asyncio.to_thread(run, wanted, out, plot)
    found = json.loads(out.read_text())
    assert found["rates"][0]["requests"] == rows[0].requests
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "TTFA p50" in capsys.readouterr().out
