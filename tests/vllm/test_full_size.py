"""The two smallest stages at the released sizes, from a checkpoint in the released format."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.test_vllm_host import PARAMETERS
from tests.vllm import full_size
from tests.vllm.requests import differences, run
from tontaube.backend.torch import Capacity, TorchStage
from tontaube.backend.weights import load_stage

NEAR_TIE = 1e-3


@pytest.mark.parametrize("which", [2, 3])
def test_it_loads_whole_and_gives_the_codes_of_the_torch_backend(
    which: int, tmp_path: Path
) -> None:
    loaded = full_size.load(which, tmp_path, torch.float32)
    try:
        assert loaded.parameters == PARAMETERS[which]
        assert loaded.stored == pytest.approx(2 * PARAMETERS[which], rel=1e-3)
        found = loaded.speak()
    finally:
        loaded.stage.close()
    network = load_stage(tmp_path)
    expected = run(
        TorchStage(network, Capacity(sequences=2, tokens=full_size.TOKENS)), full_size.JOBS
    )
    gaps = differences(full_size.JOBS, expected, found, network)
    print(f"\ncb{which}: loaded in {loaded.seconds:.1f} s, near-ties {gaps}")
    assert all(gap < NEAR_TIE for _, gap in gaps)
