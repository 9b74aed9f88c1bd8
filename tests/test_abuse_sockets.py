"""Hostile connections over real sockets: slow, endless, lying, compressed and many of them."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import os
import zlib

import httpx
import pytest
import websockets
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from api.limits import Limits
from tests.api_fakes import SPEECH, Behaviour, FakeEngine, freed, serving, until
from tests.lines import line

GET = b"GET /health HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
UPLOAD = (
    b"POST /v1/audio/voices HTTP/1.1\r\nHost: x\r\n"
    b"Content-Type: multipart/form-data; boundary=x\r\n"
)
FILE = b'--x\r\nContent-Disposition: form-data; name="audio_sample"; filename="a"\r\n\r\n'
BODY = json.dumps(SPEECH).encode()
HASTY = Limits(head_timeout=0.15, body_timeout=0.15, upload_timeout=0.15)


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    """A byte now and then, until the other side hangs up."""
    while True:
        for byte in data:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.01)


def error_of(answer: bytes) -> tuple[int, str]:
    """Status and code of an answer in OpenAI's error shape."""
    head, _, body = answer.partition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["message"]
    assert b"connection: close" in head.lower() and b"application/json" in head
    return int(head.split()[1]), error["code"]


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /health HT", GET, GET + b"X: " + b"y" * 100])
async def test_slow_heads_are_cut_off(sent: bytes) -> None:
    async with serving(FakeEngine(), HASTY) as url, line(url) as (reader, writer):
        writer.write(sent)
        assert error_of(await reader.read()) == (408, "request_timeout")


@pytest.mark.parametrize(
    ("sent", "more"), [(b"", b"\r\n"), (b"GET /", b"a"), (GET, b"X: y\r\n"), (GET + b"X: ", b"y")]
)
async def test_heads_that_come_byte_by_byte_are_cut_off(sent: bytes, more: bytes) -> None:
    async with serving(FakeEngine(), HASTY) as url, line(url) as (reader, writer):
        writer.write(sent)
        dripping = asyncio.create_task(drip(writer, more))
        assert error_of(await reader.readuntil(b"}}")) == (408, "request_timeout")
        dripping.cancel()


@pytest.mark.parametrize("second", [b"\r\n", b"\r\n\r\n", b"GET /health HT", GET])
async def test_slow_heads_after_a_request_are_cut_off_too(second: bytes) -> None:
    async with serving(FakeEngine(), HASTY) as url, line(url) as (reader, writer):
        writer.write(GET + b"\r\n")
        assert b"200 OK" in await reader.readuntil(b'{"status":"ok"}')
        writer.write(second)
        assert error_of(await reader.read()) == (408, "request_timeout")


async def test_an_idle_connection_that_waits_its_turn_is_no_slow_head() -> None:
    """The clock runs while a head is awaited, not while an answer is being made."""
    engine = FakeEngine(Behaviour(pause=0.1))
    body = SPEECH | {"input": "word " * 29 + "word"}
    async with serving(engine, HASTY) as url, httpx.AsyncClient(base_url=url) as client:
        for _ in range(2):  # on one connection
            answer = await client.post("/v1/audio/speech", json=body)
            assert len(answer.content) == 2 * 24_000 * 149 // 100


@pytest.mark.parametrize("head", [b"GET /" + b"a" * 2**20, GET + b"X: y\r\n" * 2**17])
@pytest.mark.parametrize("size", [2**10, 2**20])
async def test_endless_heads_are_refused(head: bytes, size: int) -> None:
    async with serving(FakeEngine()) as url, line(url) as (reader, writer):
        answering = asyncio.create_task(reader.read())
        for begin in range(0, len(head), size):
            writer.write(head[begin : begin + size])
            await asyncio.sleep(0)
        try:
            answer = await answering
        except ConnectionError:  # it hung up while we were still writing
            return
        assert answer == b"" or error_of(answer) == (431, "request_too_large")


GARBLED = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 40,  # TLS
    b"GET / HTTP/9.9\r\n\r\n",
    b"\0" * 100 + b"\r\n\r\n",
    GET + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    GET + b"bad header\r\n\r\n",
    GET + b"X: a\0b\r\n\r\n",
    POST + b"Content-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{}",
    POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
    POST + b"Content-Length: -1\r\n\r\n",
    POST + b"Content-Length: 99999999999999999999999\r\n\r\n{",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


@pytest.mark.parametrize("sent", GARBLED)
async def test_what_is_no_http_is_refused_in_the_same_shape(sent: bytes) -> None:
    async with serving(engine := FakeEngine()) as url, line(url) as (reader, writer):
        writer.write(sent)
        status, _ = error_of(await reader.read())
        assert status in (400, 413)
        assert engine.opened == 0


async def test_garbage_behind_a_request_does_not_get_into_its_answer() -> None:
    engine = FakeEngine(Behaviour(pause=0.01))
    body = json.dumps(SPEECH | {"input": "word " * 100}).encode()
    async with serving(engine) as url, line(url) as (reader, writer):
        writer.write(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\0garbage\r\n\r\n")
        rest = await reader.read()
        assert b"HTTP/1.1" not in rest and not rest.endswith(b"0\r\n\r\n")  # cut, visibly
        await freed(engine)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files in /proc")
@pytest.mark.parametrize("length", [b"Content-Length: 5000000", b"Transfer-Encoding: chunked"])
async def test_slow_uploads_are_cut_off_and_leave_no_file_open(length: bytes) -> None:
    """A megabyte has been spooled to a file when the sender falls asleep."""
    engine = FakeEngine()
    async with serving(engine, HASTY) as url:
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            async with line(url) as (reader, writer):
                part = FILE + b"\0" * 2_000_000
                if b"chunked" in length:
                    part = b"%x\r\n%b" % (len(part) + 1_000_000, part)
                writer.write(UPLOAD + length + b"\r\n\r\n" + part)
                assert error_of(await reader.readuntil(b"}}")) == (408, "request_timeout")
        await until(lambda: len(os.listdir("/proc/self/fd")) <= before)
    assert len(engine.voices.list()) == 1


@pytest.mark.parametrize(
    ("declared", "sent", "status"),
    [
        (len(BODY) + 50, BODY, 408),  # more promised than sent
        (len(BODY) - 5, BODY, 400),  # less promised: what is there is no JSON
        (0, BODY, 400),
        (10**9, BODY, 413),
        (3 * 2**20, b"", 413),
    ],
)
async def test_lying_lengths(declared: int, sent: bytes, status: int) -> None:
    async with serving(engine := FakeEngine(), HASTY) as url, line(url) as (reader, writer):
        writer.write(POST + b"Content-Length: %d\r\n\r\n" % declared + sent)
        head = await reader.readuntil(b"\r\n\r\n")
        assert int(head.split()[1]) == status
        assert engine.opened == 0


async def test_a_sender_that_hangs_up_in_the_middle_is_nobodys_error() -> None:
    async with serving(engine := FakeEngine()) as url:
        for head in (POST, UPLOAD):
            for rest in (b"{", FILE, FILE + b"\0" * 100_000):
                async with line(url) as (_, writer):
                    writer.write(head + b"Content-Length: 900000\r\n\r\n" + rest)
                    await writer.drain()
        async with httpx.AsyncClient(base_url=url) as client:
            metrics = (await client.get("/metrics")).text
    assert "tontaube_open_streams 0.0" in metrics and engine.opened == 0


async def test_a_reference_of_100_megabytes_is_refused_before_it_is_read() -> None:
    megabyte = b"100000\r\n" + b"\0" * 2**20 + b"\r\n"

    async def send(writer: asyncio.StreamWriter) -> None:
        for _ in range(100):
            writer.write(megabyte)
            await writer.drain()

    async with serving(engine := FakeEngine()) as url:
        async with line(url) as (reader, writer):
            writer.write(UPLOAD + b"Content-Length: 104857600\r\n\r\n")
            assert error_of(await reader.readuntil(b"}}")) == (413, "request_too_large")
        async with line(url) as (reader, writer):
            writer.write(UPLOAD + b"Transfer-Encoding: chunked\r\n\r\n")
            writer.write(b"%x\r\n%b\r\n" % (len(FILE), FILE))
            sending = asyncio.create_task(send(writer))
            assert error_of(await reader.readuntil(b"}}")) == (413, "request_too_large")
            sent = await asyncio.gather(sending, return_exceptions=True)
            assert isinstance(sent[0], ConnectionError)  # it did not read on to the end
    assert len(engine.voices.list()) == 1


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
async def test_a_compressed_body_is_never_expanded(coding: str) -> None:
    """A megabyte of it would be a gigabyte of text."""
    text = json.dumps(SPEECH | {"input": "a" * 1_000}).encode()
    body = {"gzip": gzip.compress(text), "deflate": zlib.compress(text)}.get(coding, text)
    bomb = gzip.compress(b" " * 2**24)
    async with (
        serving(engine := FakeEngine()) as url,
        httpx.AsyncClient(base_url=url, headers={"Content-Encoding": coding}) as client,
    ):
        for path in ("/v1/audio/speech", "/v1/audio/speech/batch", "/v1/audio/voices"):
            for content in (body, bomb):
                for kind in ("application/json", "multipart/form-data; boundary=x"):
                    headers = {"Content-Type": kind}
                    answer = await client.post(path, content=content, headers=headers)
                    assert answer.status_code == 415, answer.text
                    assert answer.json()["error"]["code"] == "unsupported_encoding"
    assert engine.opened == 0


async def test_messages_of_a_socket_are_bounded_before_they_are_kept() -> None:
    async with serving(FakeEngine()) as url:
        address = url.replace("http", "ws") + "/v1/audio/speech/stream"
        for size in (2**17, 2**20, 100 * 2**20):
            async with websockets.connect(address, max_size=None) as socket:
                await say(socket, " " * size)
                with pytest.raises(ConnectionClosed) as closed:
                    while True:
                        await asyncio.wait_for(socket.recv(), 20)
                assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
        async with websockets.connect(address, compression="deflate") as socket:
            assert not socket.protocol.extensions  # a bomb would have to be compressed


async def say(socket: ClientConnection, text: str) -> None:
    try:
        await socket.send(text)
    except ConnectionClosed:
        pass


async def test_200_connections_at_once() -> None:
    """Half of them say nothing, the others want to hear something, all at the same moment."""
    async with serving(engine := FakeEngine(), Limits(head_timeout=1.0)) as url:

        async def idle() -> bytes:
            async with line(url) as (reader, writer):
                writer.write(b"GET / HT")
                return await reader.read()

        async def ask() -> bytes:
            async with line(url) as (reader, writer):
                writer.write(POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY))
                writer.write(BODY)
                return await reader.read()

        answers = await asyncio.gather(*(idle() if i % 2 else ask() for i in range(200)))
    assert [error_of(answer)[0] for answer in answers[1::2]] == [408] * 100
    bodies = [answer.partition(b"\r\n\r\n")[2] for answer in answers[::2]]
    assert len(set(bodies)) == 1 and len(bodies[0]) > 12_000
    assert engine.open == 0
