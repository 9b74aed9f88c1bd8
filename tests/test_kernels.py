"""A process that speaks pieces of all lengths keeps few compiled kernels."""

from __future__ import annotations

import os

import pytest

from tontaube.kernels import KEPT, bound_kernels


def test_both_caches_are_bounded_and_the_operators_choice_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "")
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    bound_kernels()
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == str(KEPT)
