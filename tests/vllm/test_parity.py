"""Greedy codes are those of the torch backend, however prompts are cut, cached and batched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.tiny import tiny_config, tiny_job, tiny_network
from tests.vllm.conftest import Limits, OpenStage
from tests.vllm.requests import Recordings, Results, differences, mini_jobs, run
from tontaube.backend.torch import Capacity, TorchStage
from tontaube.backend.weights import load_stage, save_stage
from tontaube.bundle import MINI, Bundle
from tontaube.types import StageJob

NEAR_TIE = 1e-3  # of logits
ALONE = 12  # codes of a job that runs alone: each takes as long as a code of eight jobs together


@pytest.mark.parametrize("which", range(4))
def test_the_mini_bundle(which: int, recordings: Recordings, open_stage: OpenStage) -> None:
    folder = Bundle.open(MINI).stage(which)
    network = load_stage(folder)
    jobs = mini_jobs(recordings, which)
    assert len(jobs) >= 50
    expected = run(TorchStage(network, Capacity(tokens=1600, prefix_tokens=0)), jobs)
    codes = sum(len(row) for row, _ in expected.values())
    print(f"\ncb{which}: {len(jobs)} requests, {codes} codes")

    for pieces in (32, 512):
        stage = open_stage(folder, Limits(prefill_tokens=pieces))
        for together, asked in ((8, (jobs, expected)), (1, shortened(jobs, expected, ALONE))):
            stage.forget_prefixes()
            found = []
            for cache in ("cold", "warm"):
                before = stage.cached_tokens
                results = run(stage, asked[0], together)
                found.append(stage.cached_tokens - before)
                gaps = differences(*asked, results, network)
                print(
                    f"  pieces of {pieces}, {cache}, {together} at once: {len(jobs) - len(gaps)} "
                    f"equal, near-ties {gaps}"
                )
                assert all(gap < NEAR_TIE for _, gap in gaps)
            assert found[1] > 2 * found[0]  # cold, only what jobs begin with alike was shared


def shortened(
    jobs: Sequence[StageJob], expected: Results, codes: int
) -> tuple[list[StageJob], Results]:
    """The same with so many codes at most: what is greedy begins alike, however long it may be."""
    short = [replace(job, max_codes=min(job.max_codes, codes)) for job in jobs]
    begun = {
        name: (row[:codes], "length" if len(row) >= codes else end)
        for name, (row, end) in expected.items()
    }
    return short, begun


def test_any_positions_and_lengths(tmp_path: Path, open_stage: OpenStage) -> None:
    config = tiny_config(head_dim=32)
    network = tiny_network(config)
    save_stage(network, tmp_path, dtype=torch.float32)
    jobs = [tiny_job(f"n{n}", n, 24, min_codes=24 * (n % 2)) for n in (1, 20, 31, 32, 33, 90, 177)]
    jobs.append(tiny_job("fills the context", 177, 24, min_codes=24))
    expected = run(TorchStage(network, Capacity(tokens=200)), jobs)
    stage = open_stage(tmp_path, Limits(tokens=200, prefill_tokens=32))
    assert run(stage, jobs) == expected
