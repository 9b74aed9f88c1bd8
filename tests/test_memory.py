"""A process that speaks pieces of all lengths keeps little memory that it does not use."""

from __future__ import annotations

import os

import pytest

from tontaube.memory import KERNELS, bound_memory


def test_few_kernels_are_kept_and_the_operators_choice_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "")  # is unset at the end
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    bound_memory()
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == str(KERNELS)
