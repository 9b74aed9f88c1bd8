"""Keys, rates, sizes, times, origins; health and readiness; logs and metrics."""

from __future__ import annotations

import asyncio
import json
import logging

import httpx
import pytest

from api.hints import style_from
from api.limits import Limits, RateLimiter
from api.metrics import Metrics
from tests.api_fakes import SPEECH, FakeEngine, client_of, serving


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("Bearer wrong", 401),
        ("Basic secret", 401),
        ("secret", 401),
        ("Bearer ", 401),
        ("Bearer secret", 200),
        ("bearer  secret", 200),
    ],
)
async def test_bearer_keys(header: str | None, status: int) -> None:
    headers = {"Authorization": header} if header else {}
    async with client_of(FakeEngine(), api_key="secret") as client:
        for path in ("/v1/audio/speech", "/v1/models", "/metrics"):
            if path == "/v1/audio/speech":
                answer = await client.post(path, json=SPEECH, headers=headers)
            else:
                answer = await client.get(path, headers=headers)
            assert answer.status_code == status
            if status == 401:
                assert answer.json()["error"]["code"] == "invalid_api_key"
                assert answer.headers["www-authenticate"] == "Bearer"
        assert (await client.get("/health")).status_code == 200


async def test_rates_are_limited_per_key() -> None:
    limits = Limits(api_keys=("a", "b"), requests_per_minute=2)
    async with client_of(FakeEngine(), limits) as client:

        async def ask(key: str) -> httpx.Response:
            headers = {"Authorization": f"Bearer {key}"}
            return await client.post("/v1/audio/speech", json=SPEECH, headers=headers)

        assert [(await ask("a")).status_code for _ in range(3)] == [200, 200, 429]
        limited = await ask("a")
        assert 1 <= int(limited.headers["retry-after"]) <= 30
        assert limited.json()["error"]["type"] == "rate_limit_error"
        assert (await ask("b")).status_code == 200


def test_rate_limiter_refills_and_forgets() -> None:
    now = 0.0
    limiter = RateLimiter(60, lambda: now)
    assert [limiter.wait("a") for _ in range(60)] == [0.0] * 60
    assert limiter.wait("a") == pytest.approx(1.0)
    now = 1.0
    assert limiter.wait("a") == 0.0
    for client in range(20_000):
        limiter.wait(str(client))
    assert limiter.wait("a") == 0.0  # forgotten, so full again


async def test_bodies_are_bounded() -> None:
    engine = FakeEngine()
    async with client_of(engine) as client:
        post = client.post
        large = SPEECH | {"padding": "x" * 3_000_000}
        assert (await post("/v1/audio/speech", json=large)).status_code == 413
        lying = {"Content-Length": "5", "Content-Type": "application/json"}

        async def chunked():
            for _ in range(100):
                yield b" " * 2**16

        answer = await post("/v1/audio/speech", content=chunked(), headers=lying)
        assert answer.status_code == 413
        for length in ("-1", "1e3", "", "9" * 5_000, "²"):
            answer = await post("/v1/audio/speech", headers=[(b"content-length", length.encode())])
            assert answer.status_code in (400, 413)
    assert engine.opened == 0


async def test_dawdling_bodies_are_cut_off() -> None:
    async with serving(FakeEngine(), Limits(body_timeout=0.1)) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(head + b"Content-Length: 1000\r\n\r\n{")
        answer = await reader.readline()
        assert b" 408 " in answer
        writer.close()
        await writer.wait_closed()


async def test_cors() -> None:
    async with client_of(FakeEngine(), cors="https://a.example,https://b.example") as client:
        asking = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
        allowed = await client.options("/v1/audio/speech", headers=asking)
        assert allowed.headers["access-control-allow-origin"] == "https://a.example"
        answer = await client.get("/v1/nothing", headers={"Origin": "https://a.example"})
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        foreign = asking | {"Origin": "https://evil.example"}
        refused = await client.options("/v1/audio/speech", headers=foreign)
        assert "access-control-allow-origin" not in refused.headers


async def test_health_and_readiness() -> None:
    engine = FakeEngine(ready=False)
    async with client_of(engine) as client:
        assert (await client.get("/health")).json() == {"status": "ok"}
        assert (await client.get("/v1/test")).json() == {"status": "ok"}
        unready = await client.get("/ready")
        assert unready.status_code == 503
        assert unready.headers["retry-after"] == "5"
        speech = await client.post("/v1/audio/speech", json=SPEECH)
        assert speech.status_code == 503
        engine.failure = "the worker has ended"
        assert (await client.get("/ready")).json()["error"]["code"] == "unavailable"
        engine.ready, engine.failure = True, None
        assert (await client.get("/ready")).json()["status"] == "ready"


async def test_request_ids() -> None:
    async with client_of(FakeEngine()) as client:
        kept = await client.get("/health", headers={"x-request-id": "abc-1"})
        assert kept.headers["x-request-id"] == "abc-1"
        for bad in (b"a b", b"x" * 200, b"a\xc3\xa4", b"a;b"):
            answer = await client.get("/nothing", headers=[(b"x-request-id", bad)])
            assert answer.headers["x-request-id"].startswith("req_")


async def test_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tontaube.api")

    async def lines(log_text: bool) -> list[dict]:
        caplog.clear()
        async with client_of(FakeEngine(), log_text=log_text) as client:
            await client.post("/v1/audio/speech", json=SPEECH)
            await client.post("/v1/audio/speech", json=SPEECH | {"voice": "nobody"})
            await client.get("/health")
        return [json.loads(record.message) for record in caplog.records]

    spoken, refused = await lines(log_text=False)
    assert spoken["outcome"] == "ok" and spoken["voice"] == "anna"
    assert spoken["characters"] == len(str(SPEECH["input"]))
    assert spoken["seconds"] == pytest.approx(0.25, abs=0.01)
    assert spoken["ttfa"] > 0 and spoken["rtf"] > 0
    assert "text" not in spoken
    assert (refused["status"], refused["outcome"]) == (400, "voice_not_found")
    assert (await lines(log_text=True))[0]["text"] == SPEECH["input"]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def sample(metrics: Metrics, name: str) -> float:
    value = metrics.registry.get_sample_value(name)
    assert value is not None
    return value


def test_meter_sees_what_an_ideal_listener_hears() -> None:
    clock = Clock()
    metrics = Metrics(clock)
    with metrics.stream(10) as meter:
        clock.now += 0.5
        meter.emitted(24_000)  # first audio after 0.5 s; plays until 1.5 s
        clock.now += 60  # the reader takes its time: nobody's fault
        meter.sent()
        clock.now += 0.25
        meter.emitted(24_000)  # plays until 2.5 s
        meter.sent()
        clock.now += 2.75
        meter.emitted(24_000)  # ready 1 s too late
        meter.sent()
    assert meter.ttfa == pytest.approx(0.5)
    assert meter.rtf == pytest.approx(3.5 / 3)
    assert sample(metrics, "tontaube_underruns_total") == 1
    assert sample(metrics, "tontaube_underrun_seconds_total") == pytest.approx(1.0)
    assert sample(metrics, "tontaube_chunk_gap_seconds_sum") == pytest.approx(3.0)
    assert sample(metrics, "tontaube_audio_seconds_total") == 3
    assert sample(metrics, "tontaube_characters_total") == 10


async def test_the_engines_status_is_exported() -> None:
    async with client_of(FakeEngine()) as client:
        lines = (await client.get("/metrics")).text.splitlines()
    for line in (
        "tontaube_ready 1.0",
        "tontaube_queue_depth 5.0",
        'tontaube_cache_lookups_total{cache="phrase",result="hit"} 7.0',
        'tontaube_step_seconds{module="cb0",quantile="0.99"} 0.02',
        'tontaube_step_batch{module="cb0"} 1.5',
    ):
        assert line in lines


async def test_each_app_has_its_own_metrics() -> None:
    async with client_of(FakeEngine()) as busy, client_of(FakeEngine()) as idle:
        await busy.post("/v1/audio/speech", json=SPEECH)
        assert 'tontaube_requests_total{outcome="ok"} 1.0' in (await busy.get("/metrics")).text
        assert "tontaube_requests_total{" not in (await idle.get("/metrics")).text


async def test_batch() -> None:
    engine = FakeEngine()
    body = {
        "model": "tts-1",
        "response_format": "pcm",
        "items": [
            {"input": "One."},
            {"input": "Two, in a file.", "response_format": "wav", "speed": 2.0},
            {"input": "Three", "voice": "nobody"},
            {"input": "Four", "speed": 9},
            {"input": "🎉"},
            {"text": "Six"},
        ],
    }
    async with client_of(engine) as client:
        answer = (await client.post("/v1/audio/speech/batch", json=body)).json()
        first, second, *failed = answer["data"]
        assert [item["index"] for item in answer["data"]] == list(range(6))
        assert first["duration"] == pytest.approx(0.04)
        assert first["usage"]["total_tokens"] > 0
        assert second["response_format"] == "wav" and second["duration"] == pytest.approx(0.075)
        params = [item["error"]["param"] for item in failed]
        assert params == ["voice", "speed", "input", "input"]
        many = {"model": "tts-1", "items": [{"input": "a"}] * 33}
        assert (await client.post("/v1/audio/speech/batch", json=many)).status_code == 400
        long = {"model": "tts-1", "items": [{"input": "a" * 30_000}] * 2}
        assert (await client.post("/v1/audio/speech/batch", json=long)).status_code == 400
    assert engine.open == 0


@pytest.mark.parametrize(
    ("instructions", "style"),
    [
        ("Read it like an audiobook narrator.", "audiobook"),
        ("You are a friendly, casual podcast host", "conversational"),
        ("Speak like a customer service agent", "agentic"),
        ("louder", None),
        ("", None),
    ],
)
def test_instructions_hint_at_styles(instructions: str, style: str | None) -> None:
    assert style_from(instructions, ("audiobook", "conversational", "agentic")) == style
    assert style_from(instructions, ("whispering",)) is None
