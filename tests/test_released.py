"""The released layout from the hub to speech, at tiny widths."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import wave
from pathlib import Path

import numpy as np
from huggingface_hub.utils import disable_progress_bars

from tests.hub_standin import HubStandIn
from tests.released import TINY, write_released
from tests.test_tiny_bundle import wave_file
from tests.test_vibevoice import export
from tontaube.assembly import assemble
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.hub import Hub
from tontaube.types import SpeechRequest

EXPORT = "microsoft/VibeVoice-AcousticTokenizer"


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


ROOT = Path(__file__).parents[1]


def test_vibevoice_s_own_export_in_the_place_of_the_larger_checkpoint(tmp_path: Path) -> None:
    repositories = write_released(tmp_path / "hub")
    (tmp_path / "hub" / EXPORT).mkdir()
    export(tmp_path / "hub" / EXPORT)
    settings = Settings(model=TINY, parts={"vibevoice": EXPORT}, device="cpu", max_batch=1)
    with HubStandIn(tmp_path / "hub", repositories | {EXPORT: "main"}) as server:
        hub = Hub(endpoint=server.url, cache=tmp_path / "cache")
        bundle, machinery = assemble(settings, hub)
    assert machinery.new_decoder() is not None
    assert bundle.path("vibevoice:").parent.parent.name == "models--" + EXPORT.replace("/", "--")
    assert not [path for path in server.fetched() if "VibeVoice-1.5B" in path]


def environment(endpoint: str, home: Path, **settings: str) -> dict[str, str]:
    """That of a machine which has never asked this hub for anything."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return kept | {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(home / "hub"),
        "OMP_NUM_THREADS": "1",
        "TONTAUBE_DATA_DIR": str(home / "data"),
        "TONTAUBE_MAX_BATCH": "2",
        **{f"TONTAUBE_{name}": value for name, value in settings.items()},
    }


def run(endpoint: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "tontaube", *arguments]
    return subprocess.run(
        words,
        env=environment(endpoint, home),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_from_a_hub_id_to_speech_by_the_commands(tmp_path: Path) -> None:
    wav = tmp_path / "yes.wav"
    with HubStandIn(tmp_path / "served", write_released(tmp_path / "served")) as server:
        plan = run(server.url, tmp_path, "doctor", "--model", TINY)
        assert plan.returncode == 0, plan.stderr
        assert "files to fetch" in plan.stdout
        wrong = run(server.url, tmp_path, "say", "Yes.", "--model", f"{TINY}@v9")
        assert wrong.returncode == 1 and "there is no revision v9" in wrong.stderr
        assert "Traceback" not in wrong.stderr
        checked = run(server.url, tmp_path, "doctor", "--fetch", "--model", TINY)
        assert checked.returncode == 0 and "17 layers are used" in checked.stdout
    # the hub is gone: everything is here
    said = run(server.url, tmp_path, "say", "Yes.", "--model", TINY, "-o", str(wav))
    assert said.returncode == 0, said.stderr
    with wave.open(str(wav)) as file:
        assert file.getnframes() > 0


def test_the_server_starts_from_a_hub_id(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    with HubStandIn(tmp_path / "served", write_released(tmp_path / "served")) as server:
        settings = environment(server.url, tmp_path, MODEL=TINY, PORT=port, UI="no")
        process = subprocess.Popen([sys.executable, "app.py"], env=settings, cwd=ROOT)
        try:
            address, end = f"http://127.0.0.1:{port}/ready", time.monotonic() + 300
            while not _answers(address):
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.1)
        finally:
            process.terminate()
            process.wait(60)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
