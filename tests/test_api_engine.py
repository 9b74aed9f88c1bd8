"""The whole server: the OpenAI client against the API over the real engine, with random weights."""

from __future__ import annotations

import io
import json
import wave
from pathlib import Path

import av
import httpx
import numpy as np
import openai
import pytest
import torch
import websockets

from api.encoders import pcm16
from tests.running import running
from tests.tiny import write_tiny_bundle

torch.set_num_threads(1)
TEXT = "It is a short text."


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bundle(tmp_path_factory.mktemp("tiny")).root


def syllables() -> bytes:
    """Two seconds of a buzz that comes and goes, as 16-bit PCM."""
    time = np.arange(48_000) / 24_000
    buzz = sum(np.sin(2 * np.pi * 140 * k * time) / k for k in range(1, 12))
    return pcm16((0.3 * buzz * np.clip(np.sin(2 * np.pi * 3 * time), 0, 1)).astype(np.float32))


def wav(pcm: bytes) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(24_000)
        writer.writeframes(pcm)
    return file.getvalue()


async def test_speech_from_warm_up_to_voices(bundle: Path, tmp_path: Path) -> None:
    async with (
        running(bundle, tmp_path) as (engine, url),
        httpx.AsyncClient(base_url=url, timeout=120) as plain,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused", timeout=120) as client,
    ):
        assert (await plain.get("/ready")).status_code == 503
        await engine.warm_up()
        assert (await plain.get("/ready")).status_code == 200

        create = client.audio.speech.create
        pcm = (
            await create(
                model="tts-1",
                voice="alloy",
                input=TEXT,
                response_format="pcm",
                extra_body={"seed": 1},
            )
        ).content
        async with client.audio.speech.with_streaming_response.create(
            model="tts-1",
            voice="alloy",
            input=TEXT,
            response_format="flac",
            extra_body={"seed": 1},
        ) as answer:
            flac = b"".join([piece async for piece in answer.iter_bytes()])
        with av.open(io.BytesIO(flac)) as container:
            frames = [frame.to_ndarray().tobytes() for frame in container.decode(audio=0)]
        assert b"".join(frames) == pcm

        half = {"model": "tts-1", "input": "a\ud83d", "normalize": False}
        refused = await plain.post(
            "/v1/audio/speech",
            content=json.dumps(half),  # escaped, as other clients send it
            headers={"content-type": "application/json"},
        )
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "input"

        form = {"name": "Berta", "consent": "I am Berta and I agree."}
        noise = await plain.post(
            "/v1/audio/voices", data=form, files={"audio_sample": ("x.wav", wav(pcm))}
        )
        assert noise.json()["error"]["param"] == "audio_sample"  # what random weights say
        added = await plain.post(
            "/v1/audio/voices", data=form, files={"audio_sample": ("x.wav", wav(syllables()))}
        )
        assert added.status_code == 200, added.text
        voice = added.json()
        assert (await plain.get(voice["preview_url"])).headers["content-type"] == "audio/wav"
        assert (await create(model="tts-1", voice=voice["id"], input=TEXT)).content
        assert (await plain.delete(f"/v1/audio/voices/{voice['id']}")).json()["deleted"]
        with pytest.raises(openai.BadRequestError, match="unknown voice"):
            await create(model="tts-1", voice=voice["id"], input=TEXT)


async def test_dictation_and_barge_in(bundle: Path, tmp_path: Path) -> None:
    async with running(bundle, tmp_path) as (engine, url):
        await engine.warm_up()
        address = url.replace("http", "ws") + "/v1/audio/speech/stream"
        async with websockets.connect(address) as socket:
            await socket.send('{"type":"start"}')
            text = "Well, this is it. And so it goes on and on. " * 20
            await socket.send(json.dumps({"type": "append", "text": text}))
            heard = 0
            async for frame in socket:
                if isinstance(frame, bytes):
                    if heard == 0:
                        await socket.send('{"type":"cancel"}')
                    heard += len(frame) // 2
                    continue
                message = json.loads(frame)
                assert message["type"] != "error", message
                if message["type"] == "cancelled":
                    break
            assert message["spoken"]["samples"] == heard
            assert 0 < message["spoken"]["characters"] < len(text)
            status = engine.status()
            assert status.active_streams <= 1  # its last step may still be running
