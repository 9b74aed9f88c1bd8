"""The real OpenAI client, and request sequences of other known ones, against a real server."""

from __future__ import annotations

import asyncio
import io
import json
import urllib.request
from pathlib import Path

import av
import httpx
import numpy as np
import openai
import pytest

from api.serving import server_of
from tests.api_fakes import SPEECH, Behaviour, FakeEngine, app_of, serving, tone, until
from tontaube.errors import Busy, GenerationFailed

TEXT = str(SPEECH["input"])
PCM = np.rint(tone(TEXT, 0.01) * 32_767).astype("<i2").tobytes()


def decoded_samples(data: bytes) -> int:
    with av.open(io.BytesIO(data)) as container:
        return sum(frame.samples for frame in container.decode(audio=0))


def test_who_closes_an_idle_connection_is_the_client() -> None:
    """A request that is sent while the server closes its connection would be lost."""
    kept = server_of(app_of(FakeEngine())).config.timeout_keep_alive
    proxies = 60.0  # seconds, the usual setting
    for limits in (httpx.Limits(), openai.DEFAULT_CONNECTION_LIMITS):
        assert limits.keepalive_expiry is not None
        assert kept > max(limits.keepalive_expiry, proxies)


async def test_sync_client(tmp_path: Path) -> None:
    def use(url: str) -> None:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="unused") as client:
            speech = client.audio.speech
            whole = speech.create(model="tts-1", voice="alloy", input=TEXT, response_format="pcm")
            assert whole.content == PCM
            with speech.with_streaming_response.create(
                model="gpt-4o-mini-tts", voice="coral", input=TEXT, instructions="Be friendly."
            ) as answer:
                answer.stream_to_file(tmp_path / "speech.mp3")
            assert decoded_samples((tmp_path / "speech.mp3").read_bytes()) >= len(PCM) // 2
            with speech.with_streaming_response.create(
                model="tts-1", voice="alloy", input=TEXT, stream_format="sse"
            ) as answer:
                events = [json.loads(line[6:]) for line in answer.iter_lines() if line]
            assert events[-1]["type"] == "speech.audio.done"
            assert next(iter(client.models.list())).id == "tontaube-v1"
            assert client.models.retrieve("tts-1").id == "tts-1"

    async with serving(FakeEngine()) as url:
        await asyncio.to_thread(use, url)


async def test_async_client_gets_audio_while_it_is_made() -> None:
    engine = FakeEngine(Behaviour(pause=0.01))
    async with (
        serving(engine) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused") as client,
        client.audio.speech.with_streaming_response.create(
            model="tts-1", voice="alloy", input=TEXT * 20, response_format="wav"
        ) as answer,
    ):
        chunks_at_first = None
        size = 0
        async for piece in answer.iter_bytes():
            chunks_at_first = chunks_at_first or engine.chunks
            size += len(piece)
    assert size == 44 + 20 * len(PCM)
    assert chunks_at_first is not None and chunks_at_first < engine.chunks


async def test_client_errors_and_retries() -> None:
    engine = FakeEngine()
    async with (
        serving(engine) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused") as client,
    ):
        create = client.audio.speech.create
        with pytest.raises(openai.NotFoundError, match="tontaube-v1"):
            await create(model="whisper-1", voice="alloy", input=TEXT)
        with pytest.raises(openai.BadRequestError) as bad:
            await create(model="tts-1", voice="nobody", input=TEXT)
        assert bad.value.param == "voice"
        assert bad.value.code == "voice_not_found"
        engine.refuse = GenerationFailed("babble")
        with pytest.raises(openai.UnprocessableEntityError):
            await create(model="tts-1", voice="alloy", input=TEXT)
        assert len(engine.requests) == 1  # what fails again is not tried again
        engine.refuse = Busy("full", 0.1)
        speaking = asyncio.create_task(create(model="tts-1", voice="alloy", input=TEXT))
        await until(lambda: len(engine.requests) == 2)
        engine.refuse = None  # there is room again, and the client comes back
        assert (await speaking).content


async def test_api_key() -> None:
    async with serving(FakeEngine(), api_key="right") as url:
        for key in ("wrong", "right"):
            client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
            async with client:
                speaking = client.audio.speech.create(model="tts-1", voice="nova", input=TEXT)
                if key == "right":
                    assert (await speaking).content
                else:
                    with pytest.raises(openai.AuthenticationError):
                        await speaking


async def test_open_webui_sequence() -> None:
    """Lists models and voices, then posts without a format and keeps what comes as MP3."""
    async with serving(FakeEngine()) as url, httpx.AsyncClient(base_url=url) as client:
        models = (await client.get("/v1/models")).json()["data"]
        voices = (await client.get("/v1/audio/voices")).json()["voices"]
        assert all(voice["id"] and voice["name"] for voice in voices)
        body = {"model": models[0]["id"], "voice": voices[0]["id"], "input": TEXT}
        answer = await client.post("/v1/audio/speech", json=body)
    with av.open(io.BytesIO(answer.content)) as container:
        assert container.format.name == "mp3"


async def test_wyoming_sequence() -> None:
    """Streams WAV and reads the header as soon as it is there."""
    async with serving(FakeEngine()) as url, httpx.AsyncClient(base_url=url) as client:
        body = SPEECH | {"response_format": "wav", "voice": "alloy"}
        async with client.stream("POST", "/v1/audio/speech", json=body) as answer:
            data = b"".join([piece async for piece in answer.aiter_bytes(1_024)])
    assert data[:4] == b"RIFF" and data[44:] == PCM


async def test_plain_http_client() -> None:
    """Like curl: no SDK, HTTP/1.1, chunked."""

    def post(url: str) -> bytes:
        request = urllib.request.Request(
            f"{url}/v1/audio/speech",
            json.dumps(SPEECH).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            data: bytes = answer.read()
            return data

    async with serving(FakeEngine()) as url:
        assert await asyncio.to_thread(post, url) == PCM


async def test_progressive_decoding() -> None:
    """Like ffplay: a decoder that reads from the address plays before the end has been made."""
    engine = FakeEngine(Behaviour(pause=0.005))

    def play(data: list[bytes]) -> int:
        return decoded_samples(b"".join(data))

    async with serving(engine) as url, httpx.AsyncClient(base_url=url) as client:
        for name in ("mp3", "opus", "aac", "flac", "wav"):
            body = SPEECH | {"response_format": name, "input": TEXT * 20}
            engine.chunks, played = 0, 0
            pieces: list[bytes] = []
            async with client.stream("POST", "/v1/audio/speech", json=body) as answer:
                async for piece in answer.aiter_raw():
                    pieces.append(piece)
                    if not played and engine.chunks >= 3:
                        played = await asyncio.to_thread(play, pieces)
                        assert engine.chunks < 13
            assert 9_600 < played < await asyncio.to_thread(play, pieces)
