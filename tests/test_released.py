"""The released layout from the hub to speech, at tiny widths."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from huggingface_hub.utils import disable_progress_bars

from tests.hub_standin import HubStandIn
from tests.released import TINY, write_released
from tests.test_tiny_bundle import wave_file
from tontaube.assembly import assemble
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.hub import Hub
from tontaube.types import SpeechRequest


async def test_it_speaks_also_with_a_voice_of_the_folder(
    tmp_path: Path,
) -> None:
    disable_progress_bars()
    voices = tmp_path / "voices"
    (voices / "samples").mkdir(parents=True)
    t = np.arange(36_000) / 24_000
    hum = 0.3 * np.sin(2 * np.pi * 140 * t) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t))
    (voices / "samples" / "Hum.wav").write_bytes(wave_file(hum.astype(np.float32), 24_000))
    manifest = {"version": 1, "voices": {"Hum.wav": {"language": "de"}}}
    (voices / "manifest.json").write_text(json.dumps(manifest))
    settings = Settings(
        model=TINY, parts={"voices": str(voices)}, dtype="float32", device="cpu",
        data_dir=tmp_path / "data", engine="torch", max_batch=2, phrase_cache_bytes=0,
    )  # fmt: skip
    with HubStandIn(tmp_path / "hub", write_released(tmp_path / "hub")) as server:
        hub = Hub(endpoint=server.url, cache=tmp_path / "cache")
        bundle, machinery = assemble(settings, hub)
    engine = Engine(bundle, machinery, settings)
    await engine.start()
    try:
        assert engine.voices.get("hum").language == "german"
        assert engine.voices.get("hum").codes.shape == (4, 0)
        async with engine.stream(SpeechRequest(text="Yes.", voice="hum", seed=1)) as stream:
            samples = await stream.samples()
        assert samples.size > 0 and np.isfinite(samples).all()
        assert engine.voices.get("hum").codes.shape == (4, 18)
        assert len(list((tmp_path / "data" / "recordings").iterdir())) == 1
    finally:
        await engine.close()
