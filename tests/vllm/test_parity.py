"""Greedy codes are those of the torch backend, however prompts are cut, cached and batched."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.tiny import tiny_config, tiny_job, tiny_network
from tests.vllm.conftest import Limits, OpenStage
from tests.vllm.requests import Results, differences, mini_jobs, run
from tontaube.backend.torch import Capacity, TorchStage
from tontaube.backend.weights import load_stage, save_stage
from tontaube.bundle import MINI, Bundle

NEAR_TIE = 1e-3  # of logits


@pytest.mark.parametrize("which", range(4))
def test_the_mini_bundle(which: int, open_stage: OpenStage) -> None:
    bundle = Bundle.open(MINI)
    folder = bundle.stage(which)
    network = load_stage(folder)
    jobs = mini_jobs(bundle, which)
    assert len(jobs) >= 50
    expected = run(TorchStage(network, Capacity(tokens=1600, prefix_tokens=0)), jobs)
    codes = sum(len(row) for row, _ in expected.values())
    print(f"\ncb{which}: {len(jobs)} requests, {codes} codes")

    def compare(what: str, found: Results) -> None:
        gaps = differences(jobs, expected, found, network)
        print(f"  {what}: {len(jobs) - len(gaps)} equal, near-ties {gaps}")
        assert all(gap < NEAR_TIE for _, gap in gaps)

    for pieces in (32, 512):
        stage = open_stage(folder, Limits(prefill_tokens=pieces))
        compare(f"pieces of {pieces}, cold, by 8", run(stage, jobs))
        cold = stage.cached_tokens
        compare(f"pieces of {pieces}, warm, by 8", run(stage, jobs))
        assert stage.cached_tokens - cold > cold  # of the first round only prompts were shared
        compare(f"pieces of {pieces}, warm, alone", run(stage, jobs, together=1))
        alone = open_stage(folder, Limits(prefill_tokens=pieces))
        compare(f"pieces of {pieces}, cold, alone", run(alone, jobs, together=1))


@pytest.mark.parametrize("which", [0, 3])
def test_any_positions_and_lengths(which: int, tmp_path: Path, open_stage: OpenStage) -> None:
    config = tiny_config(which, head_dim=32)
    network = tiny_network(config)
    save_stage(network, tmp_path, dtype=torch.float32)
    jobs = [tiny_job(f"n{n}", n, 24, min_codes=24 * (n % 2)) for n in (1, 20, 31, 32, 33, 90, 177)]
    jobs.append(tiny_job("fills the context", 177, 24, min_codes=24))
    expected = run(TorchStage(network, Capacity(tokens=200)), jobs)
    stage = open_stage(tmp_path, Limits(tokens=200, prefill_tokens=32))
    assert run(stage, jobs) == expected
