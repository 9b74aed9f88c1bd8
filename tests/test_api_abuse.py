"""Bad inputs by the thousand, hostile connections, disconnects at any moment: no 5xx, no leak."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator

import httpx
import pytest
import websockets
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api_fakes import SPEECH, Behaviour, FakeEngine, app_of, freed, serving, until

FIELDS = (
    *("model", "input", "voice", "response_format", "speed", "instructions", "stream_format"),
    *("stream", "language", "style", "temperature", "top_p", "top_k", "seed", "normalize"),
    *("acoustic_temperature", "initial_seconds", "items", "__proto__", "type", "context"),
)
RAW_VALUES = (
    *("null", "true", "false", "0", "-0.0", "1e400", "-1e400", "1e-400", "NaN", "Infinity"),
    *("-Infinity", "9" * 30, "9" * 400, "-1", "0.1", "4.0001", "2147483648", "1e22", "[]", "{}"),
    *('""', '" "', '"\\u0000"', '"\\ud800"', '"\\udfff x"', '"\\u202e abc"', '"\\ufeff"'),
    *('"../../etc/passwd"', '"/etc/passwd"', '"..\\\\..\\\\x"', '"%2e%2e%2f"', '"file:///etc/x"'),
    *('"http://169.254.169.254/"', '"\\r\\nSet-Cookie: a=b"', '"{{7*7}}"', '"${jndi:ldap://x}"'),
    *('"; DROP TABLE voices"', '"<script>"', '"🎉"', '"e\\u0301\\u0302"', '"' + "é" * 201 + '"'),
    *('"' + "x" * 5_000 + '"', "[" * 50 + "]" * 50, "[[[]], {}]", '{"id": "../x"}', '{"id": 1}'),
    *('{"id": {"id": "x"}}', '{"id": ""}', '["anna"]', '"true"', '"1.0"', '"mp3 "', '"MP3"'),
    *('"PCM\\u0000"', '"alloy\\n"', '"***"', '"\\u200b\\u200b"', '"```\\ncode\\n```"'),
)


def raw_body(field: str, value: str) -> bytes:
    """SPEECH with one field replaced by raw JSON (or what some call JSON)."""
    kept = {name: json.dumps(entry) for name, entry in SPEECH.items()} | {field: value}
    return ("{" + ",".join(f'"{name}":{entry}' for name, entry in kept.items()) + "}").encode()


def expect_plain_answer(answer: httpx.Response) -> None:
    assert answer.status_code < 500, (answer.request.url, answer.request.content, answer.text)
    assert "Traceback" not in answer.text and 'File "' not in answer.text
    assert "set-cookie" not in answer.headers
    if answer.status_code >= 400:
        error = answer.json()["error"]
        assert set(error) == {"message", "type", "param", "code"} and error["message"]


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return app_of(FakeEngine())


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://test"
    ) as client:
        yield client


async def test_every_field_with_every_bad_value(client: httpx.AsyncClient) -> None:
    """About 1 300 bodies of the speech route."""
    headers = {"Content-Type": "application/json"}
    for field in FIELDS:
        for value in RAW_VALUES:
            answer = await client.post(
                "/v1/audio/speech", content=raw_body(field, value), headers=headers
            )
            expect_plain_answer(answer)


async def test_every_bad_value_in_a_batch(client: httpx.AsyncClient) -> None:
    """The same ones again as items, 32 at a time: one bad item does not spoil the others."""
    headers = {"Content-Type": "application/json"}
    bodies = [raw_body(field, value).decode() for field in FIELDS for value in RAW_VALUES]
    bodies = [body for body in bodies if len(body) < 2_000 and "9" * 400 not in body]
    for begin in range(0, len(bodies), 31):
        items = [*bodies[begin : begin + 31], json.dumps(SPEECH)]
        content = b'{"items":[' + ",".join(items).encode() + b"]}"
        answer = await client.post("/v1/audio/speech/batch", content=content, headers=headers)
        expect_plain_answer(answer)
        assert answer.json()["data"][-1]["audio"]


async def test_every_bad_value_over_a_socket() -> None:
    """And as messages of one socket, which survives them all."""
    async with serving(engine := FakeEngine()) as url:
        address = url.replace("http", "ws") + "/v1/audio/speech/stream"
        async with websockets.connect(address) as socket:
            for kind in ("start", "append", "cancel", "flush", "end", "", "start\x00"):
                for field in ("context", "text", "voice", "speed", "flush_after", "type"):
                    for value in RAW_VALUES:
                        message = f'{{"type":{json.dumps(kind)},"{field}":{value}}}'
                        await socket.send(message)
            await socket.send('{"type":"nothing"}')
            async for raw in socket:
                if isinstance(raw, str) and "'nothing'" in raw:
                    break
        await freed(engine)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)
BODIES = st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, max_size=8)
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@given(st.lists(JSON_VALUES | BODIES, min_size=5, max_size=5), st.binary(max_size=200))
@settings(max_examples=30, deadline=None, suppress_health_check=QUIET)
async def test_arbitrary_bodies(app: FastAPI, bodies: list[object], junk: bytes) -> None:
    transport = httpx.ASGITransport(app)
    headers = {"Content-Type": "application/json"}
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        for path in ("/v1/audio/speech", "/v1/audio/speech/batch", "/v1/audio/voices"):
            for content in (*(json.dumps(body).encode() for body in bodies), junk):
                expect_plain_answer(await client.post(path, content=content, headers=headers))


async def test_arbitrary_paths_methods_and_headers(client: httpx.AsyncClient) -> None:
    odd = random.Random(0)
    parts = [
        "v1",
        "audio",
        "speech",
        "voices",
        "models",
        "..",
        "%2e%2e",
        "%00",
        "%0d%0a",
        "a" * 500,
    ]
    parts += ["health", "batch", "stream", "preview", "%ff", "é", "*", "", "anna", "docs", ";x=y"]
    for _ in range(500):
        path = "/" + "/".join(odd.choices(parts, k=odd.randint(0, 5)))
        method = odd.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "BREW"])
        kind = odd.choice(["application/json", "multipart/form-data", "text/xml", "", "\xff"])
        headers = [(b"content-type", kind.encode("latin-1")), (b"accept", b"*/*;q=x")]
        answer = await client.request(method, path, headers=headers, content=odd.randbytes(5))
        assert answer.status_code < 500, (method, path)
        if answer.status_code >= 400 and method != "HEAD":
            expect_plain_answer(answer)


async def exchange(url: str, sent: bytes) -> bytes:
    """What the server says to raw bytes (possibly nothing)."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(sent)
        writer.write_eof()
        return await reader.read(2_000)
    except ConnectionError:
        return b""
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_hostile_bytes_and_many_connects() -> None:
    post = b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    hostile = [
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"/a" * 50_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
        post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}   ",
        post + b"Content-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        post + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{}",
        post + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        post + b"Content-Length: 100\r\n\r\n{",  # and gone
        post + b"Content-Length: 99999999999999999999\r\n\r\n{",
        post + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
    ]
    async with serving(engine := FakeEngine()) as url:
        for sent in hostile:
            answer = await exchange(url, sent)
            assert not answer.startswith(b"HTTP/1.1 5"), (sent[:80], answer)
            assert b"Traceback" not in answer
        idle = [asyncio.create_task(exchange(url, b"GET / HT")) for _ in range(200)]
        async with httpx.AsyncClient(base_url=url) as client:
            assert (await client.post("/v1/audio/speech", json=SPEECH)).is_success
        await asyncio.gather(*idle)
    assert engine.open == 0


async def test_disconnects_at_any_moment_harm_nobody() -> None:
    """100 clients leave whenever they like; those who stay hear exactly what they should."""
    engine = FakeEngine(Behaviour(pause=0.002))
    odd = random.Random(1)
    long = SPEECH | {"input": "Words and words and words. " * 20}
    kinds = ({}, {"stream": False}, {"stream_format": "sse"}, {"response_format": "mp3"})

    async def leave(url: str, index: int) -> None:
        body = json.dumps(long | kinds[index % 4]).encode()
        head = b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        reading = asyncio.create_task(reader.read())
        await asyncio.wait([reading], timeout=odd.random() * 0.2)
        writer.transport.abort()
        await asyncio.gather(reading, writer.wait_closed(), return_exceptions=True)

    async with serving(engine) as url, httpx.AsyncClient(base_url=url) as client:
        undisturbed = (await client.post("/v1/audio/speech", json=long)).content
        tasks = len(asyncio.all_tasks())
        leaving = [asyncio.create_task(leave(url, index)) for index in range(100)]
        for _ in range(3):
            stayed = await client.post("/v1/audio/speech", json=long, timeout=60)
            assert stayed.content == undisturbed
        await asyncio.gather(*leaving)
        await freed(engine)
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        metrics = (await client.get("/metrics")).text
    assert "tontaube_open_streams 0.0" in metrics
