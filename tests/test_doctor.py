"""What the doctor finds, before anything heavy is loaded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.utils import disable_progress_bars
from safetensors.torch import load_file, save_file

from tests.hub_standin import HubStandIn
from tests.released import TINY, write_released
from tests.tiny import write_tiny_bundle
from tontaube.__main__ import main
from tontaube.config import Settings
from tontaube.doctor import Finding, examine
from tontaube.hub import Hub


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bundle(tmp_path_factory.mktemp("tiny")).root


@pytest.fixture
def bundle(sound: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(sound, tmp_path / "bundle"))


def look(model: Path | str, hub: Hub | None = None, **changes: Any) -> list[Finding]:
    fetch = changes.pop("fetch", False)
    fields: dict[str, Any] = {"model": str(model), "device": "cpu", **changes}
    return list(examine(Settings(**fields), hub, fetch=fetch))


def problems(findings: list[Finding]) -> list[str]:
    return [str(finding) for finding in findings if finding.problem]


def test_a_sound_bundle(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", str(sound)]) == 0
    printed = capsys.readouterr().out
    for words in (
        "packages",
        "cb3",
        "codec: ",
        "tokenizer and stages agree",
        "weights",
        "Prompted",
    ):
        assert words in printed
    assert "✗" not in printed


def test_each_problem_is_named_and_the_rest_still_checked(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = bundle / "cb2" / "model.safetensors"
    tensors = load_file(weights)
    tensors["audio_head.fc1.bias"] = torch.zeros(3)
    save_file(tensors, weights)
    config = json.loads((bundle / "cb0" / "config.json").read_text())
    (bundle / "cb0" / "config.json").write_text(json.dumps(config | {"eos_token_id": 0}))
    (bundle / "codec.safetensors").write_bytes(b"\xff" * 100)
    found = problems(look(bundle))
    assert len(found) == 3
    assert "audio_head.fc1.bias is [3] instead of [64]" in found[0]
    assert "codec.safetensors: damaged" in found[1]
    assert "<|end_of_speech|> is" in found[2] and "0 in the stage" in found[2]
    assert main(["doctor", "--model", str(bundle)]) == 1
    assert "✗" in capsys.readouterr().out


def test_memory_and_device(sound: Path) -> None:
    assert "keys and values" in str(look(sound)[-1])
    assert "toaster" in problems(look(sound, device="toaster"))[0]
    assert "no such folder" in problems(look("/nowhere/at/all"))[0]


def test_what_is_not_here_is_planned_then_fetched_and_checked(tmp_path: Path) -> None:
    disable_progress_bars()
    with HubStandIn(tmp_path / "hub", write_released(tmp_path / "hub")) as server:
        hub = Hub(endpoint=server.url, cache=tmp_path / "cache")
        planned = look(TINY, hub)
        assert not problems(planned) and "--fetch" in planned[-1].text
        assert any("facebook/w2v-bert-2.0@da985ba" in f.text for f in planned)
        fetched = {Path(path).name for path in server.fetched()}
        assert fetched <= {"bundle.json", "model.safetensors.index.json"}
        full = Hub(endpoint=server.url, cache=tmp_path / "cache", free=lambda _: 0)
        assert "room for 0.0 MB" in problems(look(TINY, full))[0]
        checked = look(TINY, hub, fetch=True)
    assert not problems(checked)
    assert any("17 layers are used" in finding.text for finding in checked)
    assert any(finding.text.startswith("VibeVoice") for finding in checked)
