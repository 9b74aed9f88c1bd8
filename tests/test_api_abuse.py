"""Bad inputs by the thousand: no 5xx, no traceback, nothing left open, no memory kept."""

from __future__ import annotations

import gc
import json
import logging
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator

import pytest
import websockets
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api_fakes import SPEECH, FakeEngine, app_of, freed, serving_app
from tests.asgi import JSON, Answer, Headers, ask

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


Input = tuple[str, str, bytes, Headers]  # method, target, body, headers


def raw_body(field: str, value: str) -> bytes:
    """SPEECH with one field replaced by raw JSON (or what some call JSON)."""
    kept = {name: json.dumps(entry) for name, entry in SPEECH.items()} | {field: value}
    return ("{" + ",".join(f'"{name}":{entry}' for name, entry in kept.items()) + "}").encode()


def bad_fields() -> Iterator[Input]:
    """Every field with every bad value."""
    for field in FIELDS:
        for value in RAW_VALUES:
            yield "POST", "/v1/audio/speech", raw_body(field, value), JSON


def bad_items() -> Iterator[Input]:
    """The same as items of batches, whose last item is good."""
    bodies = [raw_body(field, value).decode() for field in FIELDS for value in RAW_VALUES]
    bodies = [body for body in bodies if len(body) < 2_000 and "9" * 400 not in body]
    for begin in range(0, len(bodies), 31):
        items = [*bodies[begin : begin + 31], json.dumps(SPEECH)]
        content = b'{"items":[' + ",".join(items).encode() + b"]}"
        yield "POST", "/v1/audio/speech/batch", content, JSON


def bad_documents() -> Iterator[Input]:
    """A good body with bytes lost, doubled, swapped or replaced, and what is hardly JSON at all."""
    odd = random.Random(0)
    good = json.dumps(SPEECH | {"voice": {"id": "anna"}, "speed": 1.5, "seed": 3}).encode()
    for _ in range(1_000):
        body = bytearray(good)
        for _ in range(odd.randint(1, 4)):
            at, upto = sorted(odd.choices(range(len(body)), k=2))
            change = odd.randrange(4)
            if change == 0:
                del body[at : at + odd.randint(1, 9)]
            elif change == 1:
                body[at:at] = body[at : min(upto, at + 40)]
            elif change == 2:
                body[at], body[upto] = body[upto], body[at]
            else:
                body[at] = odd.choice(b'\0"{}[],:\\\xff\x80e-0')
        yield "POST", "/v1/audio/speech", bytes(body), JSON
    deep = b"[" * 100_000
    for body in (b"", b"\0", b"\xff\xfe{}", b"nul", b"{", b"1", b'"a"', b"[]", deep, deep[:900]):
        for path in ("/v1/audio/speech", "/v1/audio/speech/batch"):
            yield "POST", path, body, JSON


def bad_targets() -> Iterator[Input]:
    """Paths, methods and headers thrown together."""
    odd = random.Random(0)
    parts = [
        *("v1", "audio", "speech", "voices", "models", "health", "batch", "stream", "preview"),
        *("..", "%2e%2e", "%00", "%0d%0a", "%ff", "*", "", "anna", "docs", ";x=y", "a" * 500),
    ]
    methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "BREW"]
    kinds = [b"application/json", b"multipart/form-data", b"text/xml", b"", b"\xff", b"a/b; c=\0"]
    for _ in range(1_000):
        path = "/" + "/".join(odd.choices(parts, k=odd.randint(0, 5)))
        headers = [(b"content-type", odd.choice(kinds)), (b"accept", b"*/*;q=x")]
        headers += [(b"x-request-id", odd.randbytes(9)), (b"authorization", odd.randbytes(9))]
        yield odd.choice(methods), path + "?" + "%&=;"[: odd.randint(0, 4)], b"\0{", headers


def bad_messages() -> Iterator[str]:
    """Of a socket."""
    for kind in ("start", "append", "cancel", "flush", "end", "", "start\x00"):
        for field in ("context", "text", "voice", "speed", "flush_after", "type"):
            for value in RAW_VALUES:
                yield f'{{"type":{json.dumps(kind)},"{field}":{value}}}'


def expect_plain(answer: Answer, sent: Input) -> None:
    """It is an answer of ours, and no 5xx (the fake is never busy)."""
    assert 200 <= answer.status < 500, (sent, answer)
    assert b"Traceback" not in answer.body and b'File "' not in answer.body, sent
    assert all(name.lower() != b"set-cookie" for name, _ in answer.headers)
    assert all(b"\r" not in value and b"\n" not in value for _, value in answer.headers)
    if answer.status >= 400 and sent[0] != "HEAD" and answer.body:
        assert answer.error, sent


async def send_all(app: FastAPI, inputs: Iterator[Input]) -> int:
    count = 0
    for sent in inputs:
        answer = await ask(app, *sent)
        expect_plain(answer, sent)
        count += 1
        if sent[1].endswith("/batch") and answer.status == 200:
            data = json.loads(answer.body)["data"]
            assert data[-1]["audio"]  # a bad item does not spoil the others
            count += len(data) - 2
    return count


async def say_all(app: FastAPI) -> int:
    """To one socket, which survives it all."""
    count = 0
    async with serving_app(app) as url:
        address = url.replace("http", "ws") + "/v1/audio/speech/stream"
        async with websockets.connect(address) as socket:
            for message in bad_messages():
                await socket.send(message)
                count += 1
            await socket.send('{"type":"nothing"}')
            async for raw in socket:
                if isinstance(raw, str) and "'nothing'" in raw:
                    break
    return count


async def test_five_thousand_bad_inputs(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine()
    app = app_of(engine)
    caplog.set_level(logging.WARNING)
    sent: Counter[str] = Counter()
    for corpus in (bad_fields, bad_items, bad_documents, bad_targets):
        sent[corpus.__name__] = await send_all(app, corpus())
    sent["bad_messages"] = await say_all(app)
    await freed(engine)
    assert sent.total() >= 5_000, sent
    assert not caplog.records  # no warnings, no tracebacks
    assert len(engine.voices.list()) == 1
    assert b"tontaube_open_streams 0.0" in (await ask(app, "GET", "/metrics")).body


async def test_bad_inputs_are_not_remembered() -> None:
    """Memory after a second helping is that after the first, but for the engine's own notes."""
    engine = FakeEngine()
    app = app_of(engine)

    async def helping() -> int:
        await send_all(app, (sent for n, sent in enumerate(bad_fields()) if n % 9 == 0))
        await send_all(app, (sent for n, sent in enumerate(bad_targets()) if n % 9 == 0))
        engine.requests.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    await helping()
    tracemalloc.start()
    try:
        first = await helping()
        assert await helping() - first < 100_000
    finally:
        tracemalloc.stop()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)
BODIES = st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, max_size=8)
APP = app_of(FakeEngine())


@given(st.lists(JSON_VALUES | BODIES, min_size=5, max_size=5), st.binary(max_size=200))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_arbitrary_bodies(bodies: list[object], junk: bytes) -> None:
    for path in ("/v1/audio/speech", "/v1/audio/speech/batch", "/v1/audio/voices"):
        for content in (*(json.dumps(body).encode() for body in bodies), junk):
            sent = ("POST", path, content, JSON)
            expect_plain(await ask(APP, *sent), sent)
