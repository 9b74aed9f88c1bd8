"""Tests that run vLLM: in an environment of its own (see ``.ci/vllm``), skipped where it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from tests.vllm.requests import Recordings
from tontaube.backend.vllm.capacity import Capacity, StageSize
from tontaube.backend.vllm.installation import check, prepare_environment
from tontaube.bundle import MINI, Bundle
from tontaube.errors import Unavailable
from tontaube.tokens import StageConfig

if TYPE_CHECKING:
    from tontaube.backend.vllm.stage import VllmStage

HERE = Path(__file__).parent

OpenStage = Callable[..., "VllmStage"]


@dataclass(frozen=True)
class Limits:
    """Of a stage under test."""

    sequences: int = 8
    tokens: int = 1600
    prefill_tokens: int = 512


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip with the reason; vLLM's own warnings are not ours to turn into errors."""
    try:
        check("cpu")
        missing = None
    except Unavailable as error:
        missing = str(error)
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        item.add_marker(pytest.mark.filterwarnings("default"))
        if missing is not None:
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(scope="session")
def recordings() -> Recordings:
    """The mini bundle's voice."""
    return Recordings.make(Bundle.open(MINI))


@pytest.fixture(scope="module")
def open_stage() -> Iterator[OpenStage]:
    """Opens a folder's stage in float32. All are closed together, at the end of the file: the first
    one that is takes the process-wide groups of the others with it."""
    prepare_environment()
    from tontaube.backend.vllm.stage import VllmStage

    opened: list[VllmStage] = []

    def make(folder: Path, limits: Limits | None = None) -> VllmStage:
        limits = limits or Limits()
        size = StageSize.of(StageConfig.read(folder), limits.tokens, torch.float32)
        capacity = Capacity(
            sequences=limits.sequences,
            tokens=limits.tokens,
            kv_bytes=size.kv_bytes(limits.sequences),
            prefill_tokens=limits.prefill_tokens,
        )
        opened.append(VllmStage.open(folder, capacity))
        return opened[-1]

    yield make
    for stage in opened:
        stage.close()
