"""The socket: text as it is written in, audio out; contexts, pauses, cancelling, wrong messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import numpy as np
import pytest
import websockets
from hypothesis import given, settings
from hypothesis import strategies as st

from api.limits import Limits
from api.pieces import Pieces
from api.spoken import SpokenMap
from tests.api_fakes import Behaviour, FakeEngine, freed, serving, tone
from tontaube.types import AudioChunk, Segment

TEXT = "Good morning to you. The train leaves at nine. "


@dataclass
class Talk:
    """A client: sends messages, keeps what comes back."""

    socket: websockets.ClientConnection
    audio: dict[str, bytes] = field(default_factory=dict)
    pieces: list[dict] = field(default_factory=list)

    async def say(self, kind: str, **fields: object) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def hear(self, *kinds: str) -> dict:
        """The next message of one of ``kinds``; audio before it is kept."""
        async with asyncio.timeout(20):
            while True:
                message = json.loads(await self.socket.recv())
                if message["type"] == "audio":
                    data = await self.socket.recv()
                    assert isinstance(data, bytes) and len(data) == 2 * message["samples"]
                    context = message["context"]
                    self.audio[context] = self.audio.get(context, b"") + data
                    self.pieces.append(message)
                if message["type"] in kinds:
                    return message
                assert message["type"] in ("audio", "started"), message


@asynccontextmanager
async def talking(
    engine: FakeEngine, limits: Limits | None = None, **headers: str
) -> AsyncIterator[Talk]:
    async with serving(engine, limits) as url:
        address = url.replace("http", "ws") + "/v1/audio/speech/stream"
        async with websockets.connect(address, additional_headers=headers) as socket:
            yield Talk(socket)
        await freed(engine)


def pcm(*pieces: str) -> bytes:
    samples = np.concatenate([tone(piece.strip(), 0.01) for piece in pieces])
    return np.rint(samples * 32_767).astype("<i2").tobytes()


async def test_text_in_audio_out() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say("start", voice="nova")
        started = await talk.hear("started")
        assert (started["voice"], started["sample_rate"]) == ("anna", 24_000)
        for word in TEXT.split(" "):
            await talk.say("append", text=word + " ")
        await talk.say("end")
        done = await talk.hear("done")
    first, second = "Good morning to you. ", "The train leaves at nine. "
    assert talk.audio["default"] == pcm(first, second)
    assert done["spoken"]["samples"] == len(pcm(first, second)) // 2
    assert done["usage"]["total_tokens"] > 0
    ranges = [(piece["segment"]["start"], piece["segment"]["end"]) for piece in talk.pieces]
    assert [TEXT[begin:end].strip() for begin, end in ranges] == [first.strip(), second.strip()]
    assert talk.pieces[0]["end"] == talk.pieces[1]["start"]


async def test_the_first_clause_is_spoken_before_the_text_ends() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say("start")
        await talk.say("append", text="Once upon a time, there ")
        heard = await talk.hear("audio")
        assert heard["segment"]["start"] == 0
        await talk.say("append", text="was a dove.")
        await talk.say("end")
        await talk.hear("done")


async def test_flush_and_long_pauses() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say("start", context="a")
        await talk.say("append", context="a", text="Wait")
        await talk.say("flush", context="a")
        assert (await talk.hear("audio"))["segment"]["end"] == 4
        await talk.say("start", context="b", flush_after=0.05)
        await talk.say("append", context="b", text="Well")
        assert (await talk.hear("audio"))["context"] == "b"


async def test_contexts_are_independent() -> None:
    async with talking(FakeEngine(Behaviour(pause=0.01))) as talk:
        for name in ("a", "b"):
            await talk.say("start", context=name)
            await talk.say("append", context=name, text=f"This is {name} speaking now. " * 5)
        for name in ("a", "b"):
            await talk.say("end", context=name)
        assert {(await talk.hear("done"))["context"] for _ in range(2)} == {"a", "b"}
        await talk.say("start", context="a")  # the name is free again
        await talk.hear("started")
    for name in ("a", "b"):
        assert talk.audio[name] == pcm(*[f"This is {name} speaking now. "] * 5)


async def test_cancel_stops_and_tells_what_was_spoken() -> None:
    engine = FakeEngine(Behaviour(pause=0.01))
    async with talking(engine) as talk:
        await talk.say("start")
        await talk.say("append", text="A sentence that is rather long. " * 100)
        for _ in range(3):
            await talk.hear("audio")
        await talk.say("cancel")
        cancelled = await talk.hear("cancelled")
        assert engine.open == 0
        samples = len(talk.audio["default"]) // 2
        assert cancelled["spoken"]["samples"] == samples < 100 * 24_000 * 0.3
        assert cancelled["spoken"]["characters"] == talk.pieces[-1]["text_end"]
        await talk.say("start")
        await talk.say("append", text="A sentence that is rather long. " * 100)
        await talk.hear("audio")
        await talk.say("cancel", played_samples=3_600)
        spoken = (await talk.hear("cancelled"))["spoken"]
        assert spoken["samples"] == 3_600
        assert 0 < spoken["characters"] < 32


async def test_leaving_frees_every_context() -> None:
    engine = FakeEngine(Behaviour(pause=0.01))
    async with talking(engine) as talk:
        for name in "abc":
            await talk.say("start", context=name)
            await talk.say("append", context=name, text="Words and words and words. " * 200)
        await talk.hear("audio")
        assert engine.open == 3
    assert engine.open == 0


async def test_a_reader_that_stops_reading_can_still_cancel_and_leave() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await talk.say("start")
        for _ in range(4):  # 96 s of audio, more than the buffers between us hold
            await talk.say("append", text="Words and words and words. " * 360)
        await asyncio.sleep(0.2)
        await talk.say("cancel")
        await freed(engine)
        await talk.hear("cancelled")


async def test_a_failing_context_does_not_harm_the_others() -> None:
    engine = FakeEngine(Behaviour(fail_after=1))
    async with talking(engine) as talk:
        await talk.say("start", context="a")
        await talk.say("append", context="a", text="Words and words. " * 20)
        error = await talk.hear("error")
        assert error["context"] == "a" and error["error"]["code"] == "internal_error"
        assert "secret" not in json.dumps(error)
        engine.behaviour = Behaviour()
        await talk.say("start", context="a")
        await talk.say("append", context="a", text="Well then.")
        await talk.say("end", context="a")
        await talk.hear("done")


WRONG = [
    ("{", "invalid_json", None),
    ("[" * 20_000, "invalid_json", None),
    ("1" * 5_000, "invalid_json", None),
    ("[]", "invalid_value", None),
    ("null", "invalid_value", None),
    ("{}", "invalid_value", None),
    (b"\x00\x01", "invalid_value", None),
    ({"type": "sing"}, "invalid_value", None),
    ({"type": "append", "text": "x"}, "invalid_value", "context"),
    ({"type": "append", "context": "open"}, "missing_required_parameter", "text"),
    ({"type": "append", "context": "open", "text": 1}, "invalid_value", "text"),
    ({"type": "append", "context": "open", "text": "x" * 40_001}, "invalid_value", "text"),
    ({"type": "cancel", "played_samples": -1}, "invalid_value", "played_samples"),
    ({"type": "start", "context": "open"}, "invalid_value", "context"),
    ({"type": "start", "context": "a b"}, "invalid_value", "context"),
    ({"type": "start", "context": "\r\n"}, "invalid_value", "context"),
    ({"type": "start", "voice": "nobody"}, "voice_not_found", "voice"),
    ({"type": "start", "model": "nothing"}, "model_not_found", "model"),
    ({"type": "start", "speed": 99}, "invalid_value", "speed"),
    ({"type": "start", "response_format": "mp3"}, "invalid_value", "response_format"),
]


async def test_wrong_messages_are_answered_and_survived() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say("start", context="open")
        await talk.hear("started")
        for message, code, param in WRONG:
            await talk.socket.send(json.dumps(message) if isinstance(message, dict) else message)
            error = (await talk.hear("error"))["error"]
            assert (error["code"], error["param"]) == (code, param), message
        await talk.say("append", context="open", text="Still here.")
        await talk.say("end", context="open")
        await talk.hear("done")


async def test_contexts_and_messages_are_bounded() -> None:
    async with talking(FakeEngine(), Limits(contexts=2, message_characters=1_000)) as talk:
        for name in "abc":
            await talk.say("start", context=name)
        assert "at most 2" in (await talk.hear("error"))["error"]["message"]
        await talk.say("append", context="a", text="x" * 2_000)
        with pytest.raises(websockets.ConnectionClosedError) as closed:
            while True:
                await talk.hear("error")
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


async def test_silent_sockets_are_closed() -> None:
    async with talking(FakeEngine(), Limits(idle_timeout=0.1)) as talk:
        with pytest.raises(websockets.ConnectionClosedError) as closed:
            while True:
                await talk.hear("error")
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 4408


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer right", "Origin": "https://evil.example"}, 403),
    ],
)
async def test_refused_handshakes(headers: dict[str, str], status: int) -> None:
    limits = Limits(api_keys=("right",))
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with talking(FakeEngine(), limits, **headers):
            pass
    assert refused.value.response.status_code == status
    async with talking(FakeEngine(), limits, Authorization="Bearer right") as talk:
        await talk.say("start")
        await talk.hear("started")


async def test_metrics_of_contexts() -> None:
    engine = FakeEngine()
    async with serving(engine) as url:
        address = url.replace("http", "ws") + "/v1/audio/speech/stream"
        async with websockets.connect(address) as socket:
            talk = Talk(socket)
            await talk.say("start")
            await talk.say("append", text="Hello there.")
            await talk.say("end")
            await talk.hear("done")
        async with httpx.AsyncClient(base_url=url) as client:
            metrics = (await client.get("/metrics")).text
    assert "tontaube_characters_total 12.0" in metrics
    assert 'tontaube_requests_total{outcome="ok"} 1.0' in metrics
    assert "tontaube_stream_rtf_count 0.0" in metrics


@given(st.lists(st.text(st.sampled_from("ab .,!?\n"), max_size=12), max_size=12))
@settings(max_examples=100, deadline=None)
def test_pieces_are_the_text(parts: list[str]) -> None:
    pieces = Pieces(40)
    given_out = [piece for part in parts for piece in pieces.push(part)]
    given_out += pieces.flush()
    text = "".join(parts)
    assert text.startswith("".join(given_out))
    assert not text[len("".join(given_out)) :].strip()
    assert not pieces.waiting


def test_spoken_map_interpolates() -> None:
    spoken = SpokenMap()
    assert spoken.until(5) == {"characters": 0, "samples": 0}
    segment = Segment(0, "x" * 20, 0, 20, True)
    spoken.add(AudioChunk(np.zeros(100, np.float32), 0, segment, 10))
    spoken.add(AudioChunk(np.zeros(100, np.float32), 100, segment, 20))
    assert spoken.until(50) == {"characters": 5, "samples": 50}
    assert spoken.until(150) == {"characters": 15, "samples": 150}
    assert spoken.until(None) == spoken.until(10_000) == {"characters": 20, "samples": 200}
