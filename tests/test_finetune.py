"""Fine-tuning: recordings → a bundle that opens, has the voice, and has moved toward it."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.pages import wav
from tests.tiny import tiny_config, tiny_network, write_tiny_bundle
from tontaube.assembly import open_grammar
from tontaube.backend.weights import load_stage
from tontaube.bundle import Bundle
from tontaube.errors import BundleError
from tontaube.recordings import read_codes
from tontaube.train.finetune import Plan, adapt, finetune, merge
from tontaube.train.finetune_data import DataError, Labels, code_folder, read_list

RATE = 24_000
LABELS = Labels("english", "audiobook", "Ada Lovelace")
QUICK = Plan(minutes=(10, 10, 10, 10), tokens=256, rank=4, steps=25)


def buzz(seconds: float, pitch: float) -> np.ndarray:
    """Something with a pitch that comes and goes, which a reference has to have."""
    t = np.arange(int(seconds * RATE)) / RATE
    tone = sum(np.sin(2 * np.pi * pitch * k * t) / k for k in range(1, 12))
    return (0.2 * tone * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t))).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    (data / "wav").mkdir(parents=True)
    lines = []
    for i in range(10):
        (data / f"wav/{i}.wav").write_bytes(wav(buzz(1.1 + i / 10, 110 + 10 * i)))
        lines.append(f"wav/{i}.wav\tLine {i} is said here.")
    (data / "list.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    return data


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return write_tiny_bundle(tmp_path / "bundle")


@pytest.mark.parametrize("rank", (0, 4))
def test_a_finetuned_bundle_opens_and_fits_the_recordings(
    rank: int, bundle: Bundle, folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "new"
    finetune(bundle, folder, LABELS, target, replace(QUICK, rank=rank))
    made = Bundle.open(target)
    open_grammar(made)
    voice = made.description.voices[-1]
    assert made.description.default_voice == voice.id == "ada-lovelace"
    assert read_codes(made.path(str(voice.codes))).shape[0] == 4
    gained = 0.0
    for stage in range(4):
        before = load_stage(bundle.stage(stage)).state_dict()
        after = load_stage(made.stage(stage)).state_dict()
        assert before.keys() == after.keys()
        assert any(not torch.equal(before[name], after[name]) for name in before)
        with (target / f"training/cb{stage}/curves.csv").open() as file:
            losses = [float(r["value"]) for r in csv.DictReader(file) if r["name"] == "loss"]
        gained += losses[0] - losses[-1]
    assert gained > 0


def test_numbers_are_written_out_and_labels_come_from_the_line(
    bundle: Bundle, folder: Path
) -> None:
    with (folder / "list.tsv").open("a", encoding="utf-8") as file:
        file.write("wav/0.wav\tIch habe 3 Hunde.\tgerman\tconversational\tKarl\n")
    *_, (path, labels, text) = read_list(folder, LABELS, bundle.description)
    assert text == "Ich habe drei Hunde."
    assert labels == Labels("german", "conversational", "Karl")
    assert path == folder / "wav/0.wav"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("wav/none.wav\tHello.", "no file"),
        ("../data/wav/0.wav\tHello.", "outside"),
        ("/etc/hostname\tHello.", "outside"),
        ("wav/0.wav", "no text"),
        ("wav/0.wav\tHello.\tklingon", "klingon"),
        ("wav/0.wav\tHello.\tenglish\tshouted", "shouted"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(
    line: str, said: str, bundle: Bundle, folder: Path
) -> None:
    (folder / "list.tsv").write_text(f"wav/1.wav\tFine.\n{line}\n", "utf-8")
    with pytest.raises(DataError, match=f"line 2.*{said}"):
        read_list(folder, LABELS, bundle.description)


def test_a_recording_that_is_no_voice_is_named(bundle: Bundle, folder: Path) -> None:
    (folder / "wav/1.wav").write_bytes(wav(np.zeros(RATE * 2)))
    with pytest.raises(DataError, match=r"1\.wav.*silent"):
        code_folder(folder, LABELS, bundle.description, lambda samples: np.zeros((4, 9), int))


def test_the_bundle_that_ships_is_what_is_fitted_if_none_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tontaube.train", "finetune", "--data", str(tmp_path)]
    ended = subprocess.run([*command, "--target", str(tmp_path / "new")], capture_output=True)
    assert ended.returncode == 1
    assert ended.stderr.decode().startswith(f"{tmp_path / 'list.tsv'}: not found")


def test_the_bundle_itself_is_never_overwritten(bundle: Bundle, folder: Path) -> None:
    with pytest.raises(DataError, match="another folder"):
        finetune(bundle, folder, LABELS, bundle.root, QUICK)


def test_too_few_recordings_are_refused(bundle: Bundle, folder: Path, tmp_path: Path) -> None:
    lines = (folder / "list.tsv").read_text("utf-8").splitlines()[:3]
    (folder / "list.tsv").write_text("\n".join(lines), "utf-8")
    with pytest.raises(DataError, match="3 recordings"):
        finetune(bundle, folder, LABELS, tmp_path / "new", QUICK)


def test_a_stage_of_another_shape_is_refused(bundle: Bundle, folder: Path, tmp_path: Path) -> None:
    config = bundle.stage(2) / "config.json"
    config.write_text(config.read_text("utf-8").replace('"hidden_size": 48', '"hidden_size": 64'))
    with pytest.raises(BundleError, match="cb2"):
        finetune(bundle, folder, LABELS, tmp_path / "new", QUICK)


def test_low_rank_changes_start_as_nothing_and_merge_exactly() -> None:
    network = tiny_network(tiny_config(0))
    plain = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    ids, positions = torch.arange(12)[None], torch.arange(12)[None]
    before = network(ids, positions)
    learning = adapt(network, 4)
    torch.testing.assert_close(network(ids, positions), before)
    assert {id(p) for p in network.parameters() if p.requires_grad} == {id(p) for p in learning}
    with torch.no_grad():
        for parameter in learning:
            parameter.add_(0.05)
    changed = network(ids, positions)
    assert not torch.allclose(changed, before, atol=1e-3)
    merge(network)
    torch.testing.assert_close(network(ids, positions), changed)
    assert network.state_dict().keys() == plain.keys()
