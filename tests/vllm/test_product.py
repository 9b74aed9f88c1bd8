"""The whole product on vLLM: it speaks, and an interrupted stream leaves nothing in its engines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tontaube.assembly import assemble
from tontaube.backend.base import StageModule
from tontaube.backend.vllm.counters import EngineCounters
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.types import SpeechRequest

EMPTY = EngineCounters(running=0, waiting=0, kv_usage=0.0)
TEXT = "Nobody knew why the boat came back before dawn. Its net was empty."


async def test_it_speaks_and_an_interrupted_stream_frees_its_sequences(tmp_path: Path) -> None:
    settings = Settings(engine="vllm", device="cpu", data_dir=tmp_path, max_batch=4)
    bundle, machinery = await asyncio.to_thread(assemble, settings)
    assert machinery.kind == "vllm"
    engine = Engine(bundle, machinery, settings)
    await engine.start()
    try:
        async with engine.stream(SpeechRequest(text="Yes, it was.", seed=1)) as stream:
            samples = await stream.samples()
        assert len(samples) > 6_000 and np.abs(samples).max() > 0.01
        for _ in range(3):
            async with engine.stream(SpeechRequest(text=TEXT, seed=2)) as stream:
                await anext(aiter(stream))
            assert await _counters(engine, machinery.stages) == [EMPTY] * 4
        assert engine.status().cancellations == 3
    finally:
        await engine.close()


async def _counters(engine: Engine, stages: Sequence[StageModule]) -> list[EngineCounters]:
    """Looked at when the streams that were left have had their turn of the worker."""
    from tontaube.backend.vllm.stage import VllmStage

    for _ in range(500):
        if not engine.status().active_streams:
            break
        await asyncio.sleep(0.02)
    return [stage.counters() for stage in stages if isinstance(stage, VllmStage)]
