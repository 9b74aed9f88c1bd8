"""What vLLM itself counts and caches, and how it draws."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.tiny import tiny_config, tiny_job, tiny_network
from tests.vllm.conftest import Limits, OpenStage
from tests.vllm.requests import Recordings, mini_jobs, run, window_after
from tontaube.backend.torch import Capacity, TorchStage
from tontaube.backend.vllm.counters import EngineCounters
from tontaube.backend.weights import load_stage, save_stage
from tontaube.bundle import MINI, Bundle
from tontaube.errors import BundleError, InvalidRequest, Unavailable
from tontaube.tokens import StageConfig
from tontaube.types import Sampling, StageJob

if TYPE_CHECKING:
    from tontaube.backend.vllm.stage import VllmStage

EMPTY = EngineCounters(running=0, waiting=0, kv_usage=0.0)
LIMITS = Limits(sequences=4, tokens=200)
DRAWS = 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cb0")
    save_stage(tiny_network(tiny_config(head_dim=32)), folder, dtype=torch.float32)
    return folder


@pytest.fixture(scope="module")
def stage(folder: Path, open_stage: OpenStage) -> VllmStage:
    return open_stage(folder, LIMITS)


def long_job(name: str, **changes: object) -> StageJob:
    return tiny_job(name, 40, 60, min_codes=60, **changes)


def test_an_abort_frees_the_sequence_at_once(stage: VllmStage) -> None:
    for i in range(6):
        stage.add(long_job(str(i)))
    for _ in range(5):
        stage.step()
    before = stage.counters()
    assert (before.running, before.waiting) == (4, 2)
    stage.abort("1")  # it runs
    stage.abort("5")  # it waits
    stage.abort("nobody")
    after = stage.counters()
    assert (after.running, after.waiting) == (3, 1)
    assert after.kv_usage < before.kv_usage
    assert stage.running == 4
    ends = Counter(o.job_id for _ in range(200) if stage.running for o in stage.step() if o.finish)
    assert ends == {"0": 1, "2": 1, "3": 1, "4": 1}
    assert stage.counters() == EMPTY
    assert set(run(stage, [long_job("1")])) == {"1"}  # the id may come again


def test_the_most_urgent_job_runs_first(stage: VllmStage) -> None:
    for i in range(4):
        stage.add(long_job(f"early {i}", priority=-1.0))
    for name, priority in (("late", 9.0), ("soon", 2.25), ("sooner", 2.125)):
        stage.add(tiny_job(name, 5, 3, min_codes=3, priority=priority))
    ends = [o.job_id for _ in range(400) if stage.running for o in stage.step() if o.finish]
    assert [name for name in ends if "early" not in name][-1] == "late"
    assert stage.counters() == EMPTY


def test_what_can_never_fit_is_refused(stage: VllmStage) -> None:
    good = tiny_job("x", 150, 51)
    for message, job in {
        "needs 201 tokens": replace(good, max_codes=52),
        "positions": replace(good, input=replace(good.input, next_position=10**6)),
        "nothing": replace(good, max_codes=0),
        "vocabulary": replace(good, input=replace(good.input, ids=(10**6,) * 150)),
        "temperature": replace(good, sampling=Sampling(temperature=9.0)),
    }.items():
        with pytest.raises(InvalidRequest, match=message):
            stage.add(job)
    assert stage.running == 0
    assert stage.counters() == EMPTY


def test_a_structural_code_ends_a_job_and_says_which(stage: VllmStage) -> None:
    for structural, name in ((64, "end_of_speech"), (65, "audio_split")):
        job = tiny_job("x", 10, 20, min_codes=5, bias={structural: 1e4})
        codes, end = run(stage, [job])["x"]
        assert (len(codes), end) == (5, name)
        assert max(codes) < 64


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=1.3, top_k=5, top_p=0.8),
        Sampling(temperature=0.7, top_p=0.9),
        Sampling(temperature=1.0, top_k=8),
    ],
    ids=str,
)
def test_draws_follow_the_torch_backends(
    sampling: Sampling, folder: Path, stage: VllmStage
) -> None:
    jobs = [
        tiny_job("x", 40, 1, bias={7: 2.0}, id=f"{seed}", sampling=replace(sampling, seed=seed))
        for seed in range(DRAWS)
    ]
    reference = TorchStage(load_stage(folder), Capacity(sequences=4, tokens=200))
    ours, theirs = (_frequencies(module, jobs) for module in (reference, stage))
    assert (ours > 0).sum() > 1
    assert abs(ours - theirs).max() < 0.055  # 3.5 standard deviations of a difference
    if sampling.top_k:
        assert np.count_nonzero(theirs) <= sampling.top_k


def _frequencies(module: TorchStage | VllmStage, jobs: list[StageJob]) -> np.ndarray:
    results = run(module, jobs, together=4)
    drawn = [codes[0] if codes else 64 for codes, _ in results.values()]  # 64: either end
    return np.bincount(drawn, minlength=65) / len(jobs)


def test_seeds_decide_and_repeat_in_any_company(stage: VllmStage) -> None:
    mixed = Sampling(temperature=0.9, top_p=0.95, top_k=20, seed=11)
    others = [
        long_job("greedy"),
        long_job("all", sampling=Sampling(temperature=1.0, seed=3)),
        long_job("few", sampling=replace(mixed, top_k=3)),
    ]
    alone = run(stage, [long_job("x", sampling=mixed)])["x"]
    assert run(stage, [*others, long_job("x", sampling=mixed)])["x"] == alone
    assert run(stage, [long_job("x", sampling=replace(mixed, seed=12))])["x"] != alone


def test_seeds_decide_and_repeat_however_prompts_are_cut(
    folder: Path, stage: VllmStage, open_stage: OpenStage
) -> None:
    drawing = Sampling(temperature=0.9, top_p=0.95, top_k=20, seed=5)
    jobs = [
        tiny_job(f"{length}", length, 12, min_codes=12, sampling=replace(drawing, seed=length))
        for length in (3, 33, 120, 180)
    ]
    pieces = open_stage(folder, replace(LIMITS, prefill_tokens=32))
    assert run(pieces, jobs) == run(stage, jobs)


def test_positions_that_depend_on_later_tokens_need_the_salt(
    recordings: Recordings, open_stage: OpenStage
) -> None:
    """Two windows whose ids begin alike and whose markers lie apart; without the salt the second
    one takes the keys of the first."""
    bundle = Bundle.open(MINI)
    first, second = (window_after(recordings, frames) for frames in (30, 200))
    assert None not in (first.input.cache_salt, second.input.cache_salt)
    expected = run(TorchStage.open(bundle.stage(0), Capacity(tokens=1600)), [second])
    salted = open_stage(bundle.stage(0))
    run(salted, [first])
    assert run(salted, [second]) == expected
    assert salted.cached_tokens == 0

    plain = [replace(job, input=replace(job.input, cache_salt=None)) for job in (first, second)]
    run(salted, plain[:1])
    assert run(salted, plain[1:]) != expected
    assert salted.cached_tokens > 0


@pytest.mark.parametrize("which", range(4))
def test_windows_without_markers_are_not_salted(which: int, recordings: Recordings) -> None:
    marker = StageConfig.read(Bundle.open(MINI).stage(which)).text_marker_token_id
    for job in mini_jobs(recordings, which):
        assert (job.input.cache_salt is not None) == (marker in job.input.ids)


def test_a_checkpoint_is_refused_by_the_names_of_its_tensors(
    tmp_path: Path, open_stage: OpenStage
) -> None:
    save_stage(tiny_network(tiny_config(head_dim=32)), tmp_path, dtype=torch.float32)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    name = "model.layers.1.mlp.up_proj.weight"
    for spoiled, message in (
        ({n: t for n, t in tensors.items() if n != name}, f"missing tensors: {name}"),
        ({**tensors, "lm_head.weight": torch.zeros(2)}, r"unknown tensors: lm_head\.weight"),
        ({**tensors, name: torch.zeros(48, 80)}, rf"{name} is \[48, 80\] instead of \[80, 48\]"),
    ):
        save_file(spoiled, path)
        with pytest.raises(BundleError, match=message):
            open_stage(tmp_path, LIMITS)


def test_what_vllm_cannot_start_is_unavailable_with_a_way_out(folder: Path) -> None:
    from tontaube.backend.vllm.capacity import Capacity as VllmCapacity
    from tontaube.backend.vllm.engine import open_engine

    little = VllmCapacity(sequences=4, tokens=200, kv_bytes=1000)
    with pytest.raises(Unavailable, match=r"vLLM cannot run.*TONTAUBE_ENGINE=torch"):
        open_engine(folder, little, torch.float32, eager=True)
