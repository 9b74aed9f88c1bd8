"""POST /v1/audio/speech over a fake engine: formats, streaming, events, headers, errors."""

from __future__ import annotations

import base64
import io
import json
import logging
import struct
from collections.abc import AsyncIterator
from itertools import pairwise

import av
import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from tests.api_fakes import SPEECH, Behaviour, FakeEngine, app_of, client_of, freed, serving, tone
from tontaube.errors import Busy, DeadlineExceeded, GenerationFailed, TontaubeError, Unavailable

TEXT = str(SPEECH["input"])
MEDIA = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg; codecs=opus",
    "ogg": "audio/ogg; codecs=opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return app_of(FakeEngine())


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Of an app that tests share which leave nothing behind."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


def events_of(body: str) -> list[dict]:
    lines = [line for line in body.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def expected_pcm(text: str = TEXT, speed: float = 1.0) -> bytes:
    return np.rint(tone(text, 0.01 / speed) * 32_767).astype("<i2").tobytes()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", MEDIA)
async def test_formats(client: httpx.AsyncClient, name: str, stream: bool) -> None:
    body = SPEECH | {"response_format": name, "stream": stream}
    answer = await client.post("/v1/audio/speech", json=body)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == MEDIA[name]
    assert answer.headers["x-sample-rate"] == "24000"
    assert answer.headers["x-request-id"]
    if stream:
        assert "content-length" not in answer.headers
    else:
        assert float(answer.headers["x-audio-duration"]) == pytest.approx(0.25, abs=0.001)
        assert float(answer.headers["x-rtf"]) > 0
        assert int(answer.headers["content-length"]) == len(answer.content)
    samples = len(expected_pcm()) // 2
    if name == "pcm":
        assert answer.content == expected_pcm()
        return
    with av.open(io.BytesIO(answer.content)) as container:
        rate = container.streams.audio[0].rate
        decoded = sum(frame.samples for frame in container.decode(audio=0)) * 24_000 / rate
    assert samples <= decoded + 1 <= samples + 3_300  # AAC's delay and two frames at most


async def test_omitted_format_is_mp3() -> None:
    async with client_of(FakeEngine()) as client:
        answer = await client.post("/v1/audio/speech", json={"model": "tts-1", "input": "Hi"})
    assert answer.headers["content-type"] == "audio/mpeg"
    with av.open(io.BytesIO(answer.content)) as container:
        assert container.format.name == "mp3"


async def test_wav_header_sizes() -> None:
    async with client_of(FakeEngine()) as client:
        body = SPEECH | {"response_format": "wav"}
        streamed = (await client.post("/v1/audio/speech", json=body)).content
        whole = (await client.post("/v1/audio/speech", json=body | {"stream": False})).content
    assert struct.unpack_from("<I", streamed, 40)[0] == 0xFFFFFFFF
    assert struct.unpack_from("<I", whole, 40)[0] == len(expected_pcm())
    assert streamed[44:] == whole[44:] == expected_pcm()
    assert streamed.count(b"RIFF") == 1


async def test_events_carry_audio_progress_and_usage() -> None:
    async with client_of(FakeEngine()) as client:
        text = TEXT * 8  # 2 s: five pieces
        body = SPEECH | {"input": text, "stream_format": "sse"}
        answer = await client.post("/v1/audio/speech", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *deltas, done = events_of(answer.text)
    assert len(deltas) == 5
    assert b"".join(base64.b64decode(d["audio"]) for d in deltas) == expected_pcm(text)
    for before, after in pairwise(deltas):
        assert before["end"] == after["start"]
        assert before["text_end"] <= after["text_end"]
    assert deltas[-1]["segment"] == {"index": 0, "start": 0, "end": len(text)}
    assert deltas[-1]["end"] == pytest.approx(2.0)
    assert deltas[-1]["text_end"] == len(text)
    assert done["type"] == "speech.audio.done"
    usage = done["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


async def test_request_reaches_the_engine() -> None:
    engine = FakeEngine()
    async with client_of(engine) as client:
        body = SPEECH | {
            "voice": {"id": "nova"},
            "instructions": "Like a bedtime story, please.",
            "speed": 1.5,
            "seed": 7,
            "temperature": 0,
            "top_p": 0.9,
            "language": "de",
            "initial_seconds": 0.4,
            "normalize": False,
            "unheard_of": {"x": 1},
            "top_k": None,
        }
        answer = await client.post("/v1/audio/speech", json=body)
    assert answer.status_code == 200
    request = engine.requests[0]
    assert (request.voice, request.style, request.speed) == ("nova", "audiobook", 1.5)
    assert (request.seed, request.temperature, request.top_p) == (7, 0, 0.9)
    assert (request.language, request.initial_seconds, request.normalize) == ("de", 0.4, False)
    assert request.top_k is None


@pytest.mark.parametrize(
    ("change", "status", "param", "code"),
    [
        ({"model": "gpt-5"}, 404, "model", "model_not_found"),
        ({"model": None}, 400, "model", "missing_required_parameter"),
        ({"model": 3}, 400, "model", "invalid_value"),
        ({"voice": "nobody"}, 400, "voice", "voice_not_found"),
        ({"voice": "../../etc/passwd"}, 400, "voice", "voice_not_found"),
        ({"voice": {}}, 400, "voice", "invalid_value"),
        ({"voice": 1}, 400, "voice", "invalid_value"),
        ({"input": ""}, 400, "input", "invalid_value"),
        ({"input": " \n\t"}, 400, "input", "invalid_value"),
        ({"input": "😀😀 🎉"}, 400, "input", "invalid_value"),
        ({"input": "***"}, 400, "input", "invalid_value"),
        ({"input": "x" * 40_001}, 400, "input", "invalid_value"),
        ({"input": ["a"]}, 400, "input", "invalid_value"),
        ({"response_format": "m4a"}, 400, "response_format", "invalid_value"),
        ({"stream_format": "ndjson"}, 400, "stream_format", "invalid_value"),
        ({"stream": "yes"}, 400, "stream", "invalid_value"),
        ({"speed": 0.2}, 400, "speed", "invalid_value"),
        ({"speed": "fast"}, 400, "speed", "invalid_value"),
        ({"speed": 10**400}, 400, "speed", "invalid_value"),
        ({"seed": -1}, 400, "seed", "invalid_value"),
        ({"seed": 2**63}, 400, "seed", "invalid_value"),
        ({"language": "klingon"}, 400, "language", "invalid_value"),
        ({"style": "shouting"}, 400, "style", "invalid_value"),
        ({"instructions": "x" * 4_097}, 400, "instructions", "invalid_value"),
    ],
)
async def test_wrong_values(
    client: httpx.AsyncClient, change: dict, status: int, param: str, code: str
) -> None:
    answer = await client.post("/v1/audio/speech", json=SPEECH | change)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["param"], error["code"]) == (param, code)


@pytest.mark.parametrize(
    "model", ["tontaube-v1", "fake-1", "tts-1-hd-1106", "gpt-4o-mini-tts-2025-12-15"]
)
async def test_model_aliases(client: httpx.AsyncClient, model: str) -> None:
    assert (await client.post("/v1/audio/speech", json=SPEECH | {"model": model})).is_success
    described = await client.get(f"/v1/models/{model}")
    assert described.json()["id"] == model


@pytest.mark.parametrize(
    ("error", "status", "headers"),
    [
        (Busy("full", 2.2), 503, {"retry-after": "3"}),
        (DeadlineExceeded("late"), 503, {"x-should-retry": "false"}),
        (Unavailable("no GPU"), 503, {"x-should-retry": "false"}),
        (GenerationFailed("babble"), 422, {}),
        (TontaubeError("the stream was cancelled"), 500, {}),
    ],
)
@pytest.mark.parametrize("stream_format", ["audio", "sse"])
async def test_failures_before_the_first_byte(
    error: TontaubeError, status: int, headers: dict[str, str], stream_format: str
) -> None:
    for engine in (
        FakeEngine(refuse=error),
        FakeEngine(Behaviour(error=error, fail_after=0)),
    ):
        async with client_of(engine) as client:
            body = SPEECH | {"stream_format": stream_format}
            answer = await client.post("/v1/audio/speech", json=body)
        assert answer.status_code == status
        assert answer.json()["error"]["message"]
        assert headers.items() <= dict(answer.headers).items()
        assert engine.open == 0


async def test_nothing_spoken_is_an_error() -> None:
    async with client_of(FakeEngine(Behaviour(seconds_per_character=0))) as client:
        assert (await client.post("/v1/audio/speech", json=SPEECH)).status_code == 422


async def test_failure_after_the_first_byte_breaks_the_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "tontaube.api")
    engine = FakeEngine(Behaviour(fail_after=2, error=GenerationFailed("babble")))
    body = SPEECH | {"input": TEXT * 8}
    async with serving(engine) as url, httpx.AsyncClient(base_url=url) as client:
        received = b""
        with pytest.raises(httpx.RemoteProtocolError):
            async with client.stream("POST", "/v1/audio/speech", json=body) as answer:
                assert answer.status_code == 200
                async for piece in answer.aiter_raw():
                    received += piece
        assert received == expected_pcm(TEXT * 8)[: 2 * 2 * 9_600]
        reason, line = (record.getMessage() for record in caplog.records)
        assert "babble" in reason and json.loads(line)["outcome"] == "failed"
        whole = await client.post("/v1/audio/speech", json=body | {"stream": False})
        assert whole.status_code == 422
    assert engine.open == 0


async def test_failure_after_the_first_event_is_an_event() -> None:
    engine = FakeEngine(Behaviour(fail_after=2))
    async with client_of(engine) as client:
        body = SPEECH | {"input": TEXT * 8, "stream_format": "sse"}
        answer = await client.post("/v1/audio/speech", json=body)
    kinds = [event["type"] for event in events_of(answer.text)]
    assert kinds == ["speech.audio.delta"] * 2 + ["speech.audio.error"]
    assert "secret" not in answer.text


async def test_unforeseen_errors_tell_nothing() -> None:
    async with client_of(FakeEngine(Behaviour(fail_after=0))) as client:
        answer = await client.post("/v1/audio/speech", json=SPEECH)
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert "secret" not in answer.text
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("body", [{}, {"stream": False}, {"stream_format": "sse"}])
async def test_leaving_frees_the_stream(body: dict) -> None:
    """Before the first byte as well as in the middle, whole answers included."""
    engine = FakeEngine(Behaviour(pause=0.02))
    long = SPEECH | {"input": TEXT * 400} | body
    async with serving(engine) as url:
        async with httpx.AsyncClient(base_url=url) as client:
            if body.get("stream", True):
                async with client.stream("POST", "/v1/audio/speech", json=long) as answer:
                    async for _ in answer.aiter_raw():
                        break
            else:
                with pytest.raises(httpx.ReadTimeout):
                    await client.post("/v1/audio/speech", json=long, timeout=0.2)
        await freed(engine)
        assert engine.opened == 1
        made = engine.chunks
        async with httpx.AsyncClient(base_url=url) as client:
            assert (await client.get("/health")).is_success
            metrics = (await client.get("/metrics")).text
    assert engine.chunks == made < 200
    assert "tontaube_cancellations_total 1.0" in metrics
    assert "tontaube_open_streams 0.0" in metrics


async def test_a_slow_reader_holds_its_own_stream_up() -> None:
    """What is not read is not made: buffers are bounded."""
    engine = FakeEngine()
    long = SPEECH | {"input": "a" * 40_000}  # 19 MB of PCM
    async with serving(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        async with client.stream("POST", "/v1/audio/speech", json=long) as answer:
            pieces = answer.aiter_raw()
            await anext(pieces)
            before = -1
            while engine.chunks != before:  # until everything between us is full
                before = engine.chunks
                other = await client.post("/v1/audio/speech", json=SPEECH)
                assert other.content == expected_pcm()
                before += 1  # the other one's own piece
            assert engine.chunks < 900
            await answer.aclose()
        await freed(engine)
