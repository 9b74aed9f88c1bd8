"""Everything together: the engine over real stages and a real codec with random weights.

``TONTAUBE_ENGINE`` chooses who runs the stages: torch, or, where it is installed, vllm.
"""

from __future__ import annotations

import asyncio
import io
import time
import wave
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
import torch

from tests.tiny import write_tiny_bundle
from tontaube.assembly import Machinery, assemble
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.errors import BundleError, Unavailable
from tontaube.pipeline import Decoder
from tontaube.types import Codes, Samples, SpeechRequest

pytestmark = pytest.mark.asyncio(loop_scope="module")
torch.set_num_threads(1)
SHORT = "It is a short text."
LONG = "It is a longer text, of which nothing can be said; but it goes on. And it goes on again."


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bundle(tmp_path_factory.mktemp("tiny")).root


def settings(bundle: Path, data: Path) -> Settings:
    return Settings(
        model=str(bundle),
        dtype="float32",
        device="cpu",
        data_dir=data,
        max_batch=8,
        phrase_cache_bytes=0,
        adjust_streams=False,
    )


class Recorder:
    """A stream decoder that keeps its codes."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self.codes: list[Codes] = []

    def push(self, codes: Codes) -> Samples:
        self.codes.append(codes)
        return self._decoder.push(codes)

    def finish(self) -> Samples:
        return self._decoder.finish()


@dataclass
class Rig:
    """An engine, what it runs, and the decoders of its streams: one for all tests, each of which
    leaves it empty."""

    engine: Engine
    machinery: Machinery
    recorders: list[Recorder]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    chosen = settings(bundle, tmp_path_factory.mktemp("data"))
    opened, machinery = assemble(chosen)
    recorders: list[Recorder] = []

    def new_decoder() -> Recorder:
        recorders.append(Recorder(machinery.new_decoder()))
        return recorders[-1]

    engine = Engine(opened, replace(machinery, new_decoder=new_decoder), chosen)
    await engine.start()
    try:
        assert not engine.ready
        await engine.warm_up()
        yield Rig(engine, machinery, recorders)
    finally:
        await engine.close()


@pytest.fixture
def engine(rig: Rig) -> Engine:
    return rig.engine


async def speak(engine: Engine, request: SpeechRequest) -> Samples:
    async with engine.stream(request) as stream:
        return await stream.samples()


async def test_it_speaks_after_a_warm_up(engine: Engine) -> None:
    assert engine.ready and engine.status().ready
    async with engine.stream(SpeechRequest(text=LONG, seed=1)) as stream:
        chunks = [chunk async for chunk in stream]
    assert len(stream.segments) == 2 and {c.segment.index for c in chunks} == {0, 1}
    samples = np.concatenate([chunk.samples for chunk in chunks])
    assert np.isfinite(samples).all() and samples.dtype == np.float32 and samples.std() > 0
    assert stream.spoken().characters == len(LONG)


async def test_batched_with_others_a_request_sounds_as_alone(engine: Engine) -> None:
    requests = [SpeechRequest(text=SHORT, seed=seed) for seed in range(3)]
    requests.append(SpeechRequest(text=SHORT, seed=0, voice="prompted"))
    alone = [await speak(engine, request) for request in requests]
    together = await asyncio.gather(*(speak(engine, request) for request in requests))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(alone[0], alone[3])


async def test_at_every_ramp_the_audio_is_that_of_its_codes(rig: Rig) -> None:
    """The same C0 whatever the pieces, and samples that equal one decode of all codes. With this
    seed speech ends by itself in torch and in vLLM: other C0 is tried again if none was heard."""
    request = SpeechRequest(text=SHORT, seed=0, trim_silence=False)
    before = len(rig.recorders)
    for initial in (0.4, 1.2, 6.0):
        samples = await speak(rig.engine, replace(request, initial_seconds=initial))
        codes = np.concatenate(rig.recorders[-1].codes, axis=1)
        whole = rig.machinery.new_decoder()
        expected = np.concatenate([whole.push(codes), whole.finish()])
        np.testing.assert_allclose(samples, expected, atol=1e-4)
        first = np.concatenate(rig.recorders[before].codes, axis=1)
        np.testing.assert_array_equal(codes[0], first[0])
    assert len(rig.recorders[before].codes) > len(rig.recorders[-1].codes)


async def test_leaving_frees_the_real_modules(engine: Engine) -> None:
    before = engine.status().cancellations
    for taken in (0, 1):
        async with engine.stream(SpeechRequest(text=LONG, seed=taken)) as stream:
            iterator = aiter(stream)
            for _ in range(taken):
                await anext(iterator)
        async with asyncio.timeout(60):
            while any(m.running + m.waiting for m in engine.status().modules):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert engine.status().cancellations == before + 2


async def test_the_event_loop_stays_free(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """While eight streams are spoken no callback holds the loop: its thread's own time between
    two ticks stays small. The wall time, which other processes lengthen, is printed."""
    ticks = [(time.monotonic(), time.thread_time())]

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.005)
            ticks.append((time.monotonic(), time.thread_time()))

    ticker = asyncio.create_task(tick())
    await asyncio.gather(
        *(speak(engine, SpeechRequest(text=SHORT, seed=seed)) for seed in range(8))
    )
    ticker.cancel()
    wall, own = np.diff(np.array(ticks), axis=0).max(axis=0)
    with capsys.disabled():
        print(f"\nlongest stall of the event loop: {1e3 * wall:.0f} ms, {1e3 * own:.1f} ms its own")
    assert own < 0.050


async def test_a_voice_made_of_a_recording_speaks(engine: Engine) -> None:
    rate = 24_000
    seconds = np.arange(2 * rate) / rate
    hum = 0.3 * np.sin(2 * np.pi * 140 * seconds) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * seconds))
    voice = await engine.voices.add("Hum", wave_file(hum, rate), "I am the hum and I agree.")
    assert voice.codes.shape == (4, 25)
    own = await speak(engine, SpeechRequest(text=SHORT, seed=0, voice="hum"))
    assert not np.array_equal(own, await speak(engine, SpeechRequest(text=SHORT, seed=0)))


def wave_file(samples: Samples, rate: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32_767).astype("<i2").tobytes())
    return buffer.getvalue()


async def test_what_cannot_be_loaded_is_named(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no such folder"):
        await Engine.load(Settings(model=str(tmp_path / "nothing"), data_dir=tmp_path))
    with pytest.raises(BundleError, match=r"bundle\.json"):
        await Engine.load(Settings(model=str(tmp_path), data_dir=tmp_path))
    with pytest.raises(Unavailable, match="toaster"):
        await Engine.load(Settings(model=str(bundle), device="toaster", data_dir=tmp_path))
