"""The GPU benchmark end to end with a model that is scaled down, and its checkpoint's sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.test_vllm_host import PARAMETERS
from tontaube.backend.weights import load_stage
from tontaube.bench.gpu import Figures, Options, run
from tontaube.bench.random_model import RELEASED, SMALL, write_random_stage
from tontaube.errors import Unavailable
from tontaube.footprint import stage_parameters


def test_it_measures_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = Options(
        small=True, engine="auto", device="cpu", folder=tmp_path / "model", repeats=1, streams=2
    )
    figures = run(options)
    assert figures.seconds == pytest.approx(SMALL.frames * 0.08, abs=0.5)
    assert 0 < figures.first_audio < figures.alone * figures.seconds
    assert figures.together > 0
    printed = capsys.readouterr().out
    for words in ("torch on cpu", "first audio", "0.08", "2 streams", "0.02", "scaled down"):
        assert words in printed
    assert (tmp_path / "model" / "cb3" / "model.safetensors").is_file()


def test_the_table_says_which_targets_are_reached() -> None:
    figures = Figures(load=1.0, first_audio=0.15, alone=0.08, together=0.05, seconds=20.0)
    rows = figures.table(8).splitlines()
    assert rows[1].endswith("0.150    0.20  reached")
    assert rows[2].endswith("reached")
    assert rows[3].endswith("0.050    0.02  2.5 times")


def test_the_whole_model_is_for_a_gpu() -> None:
    with pytest.raises(Unavailable, match="--small"):
        run(Options(device="cpu"))


@pytest.mark.parametrize("stage", range(4))
def test_the_released_sizes_are_those_of_the_contract(stage: int) -> None:
    assert stage_parameters(RELEASED.stage(stage)) == PARAMETERS[stage]


def test_random_stages_are_written_as_the_released_ones_are(tmp_path: Path) -> None:
    config = SMALL.stage(0)
    write_random_stage(config, tmp_path)
    network = load_stage(tmp_path, dtype=torch.bfloat16)
    assert network.config == config
    rows = network.audio_head.fc2.weight
    assert len(rows.unique(dim=0)) == len(rows)
