"""The torch stage: what a job gets depends on the job alone, and slots are never lost."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiny import tiny_config, tiny_job, tiny_network
from tontaube.backend.network import StageNetwork
from tontaube.backend.torch import Capacity, TorchStage
from tontaube.backend.weights import save_stage
from tontaube.errors import InvalidRequest
from tontaube.tokens import StageConfig, Vocabulary
from tontaube.types import Sampling, StageInput, StageJob

torch.set_num_threads(1)

Results = dict[str, tuple[list[int], str | None]]
CAPACITY = Capacity(sequences=4, tokens=200, prefix_tokens=0)
MIXED = Sampling(temperature=0.9, top_p=0.95, top_k=20, seed=11)


def make_stage(capacity: Capacity = CAPACITY, config: StageConfig | None = None) -> TorchStage:
    return TorchStage(tiny_network(config or tiny_config()), capacity)


def run(stage: TorchStage, jobs: Iterable[StageJob], steps: int = 10_000) -> Results:
    """Add all jobs, then step until nothing runs."""
    for job in jobs:
        stage.add(job)
    return finish(stage, steps)


def finish(stage: TorchStage, steps: int = 10_000) -> Results:
    codes: dict[str, list[int]] = defaultdict(list)
    ends: dict[str, str | None] = {}
    for _ in range(steps):
        if not stage.running:
            break
        for output in stage.step():
            assert output.job_id not in ends or ends[output.job_id] is None
            codes[output.job_id] += output.codes
            ends[output.job_id] = output.finish
    return {job: (codes[job], ends[job]) for job in ends}


def some_jobs() -> list[StageJob]:
    """Lengths around the grid of prompts, sampled and greedy, with biases and shortest lengths."""
    lengths = (1, 31, 32, 33, 64, 70, 100, 7)
    jobs = [tiny_job(f"job {i}", n, 20 + i) for i, n in enumerate(lengths)]
    jobs[1] = replace(jobs[1], sampling=MIXED, bias={3: 2.0})
    jobs[4] = replace(jobs[4], sampling=replace(MIXED, top_k=0), min_codes=10)
    jobs[5] = replace(jobs[5], sampling=replace(MIXED, temperature=1.5, top_k=70))
    return jobs


def greedy(network: StageNetwork, job: StageJob) -> tuple[list[int], str | None]:
    """The naive way: the whole sequence again for each code."""
    head = Vocabulary(network.config).head_ids()
    ids, positions = list(job.input.ids), list(job.input.positions)
    position, codes = job.input.next_position, list[int]()
    while len(codes) < job.max_codes:
        with torch.no_grad():
            hidden = network(torch.tensor([ids]), torch.tensor([positions]))
            logits = network.head(hidden[0, -1])
        stops = network.config.head_size - (2 if network.config.target_codebook == 0 else 0)
        if len(codes) < job.min_codes:
            logits[stops:] = float("-inf")
        code = int(logits.argmax())
        if code >= stops:
            return codes, ("end_of_speech", "audio_split")[code - stops]
        codes.append(code)
        ids.append(head[code])
        positions.append(position)
        position += 1
    return codes, "length"


@pytest.mark.parametrize("which", [0, 1, 3])
def test_codes_are_those_of_the_network_without_a_cache(which: int) -> None:
    config = tiny_config(which)
    network = tiny_network(config)
    jobs = [tiny_job(f"n{n}", n, 24, min_codes=24 * (n % 2)) for n in (1, 20, 64, 65, 90)]
    results = run(TorchStage(network, CAPACITY), jobs)
    assert results == {job.id: greedy(network, job) for job in jobs}


def test_a_structural_code_ends_a_job_and_says_which() -> None:
    stage = make_stage()
    for structural, name in ((64, "end_of_speech"), (65, "audio_split")):
        job = tiny_job("x", 10, 20, min_codes=5, bias={structural: 1e4})
        codes, end = run(stage, [job])["x"]
        assert (len(codes), end) == (5, name)
        assert max(codes) < 64


def test_alone_together_in_any_order_and_joining_late_are_the_same() -> None:
    jobs = some_jobs()
    alone = {job.id: run(make_stage(), [job])[job.id] for job in jobs}
    assert run(make_stage(), jobs) == alone
    wide = replace(CAPACITY, sequences=16, prefill_tokens=32)
    for seed in range(3):
        shuffled = random.Random(seed).sample(jobs, len(jobs))
        assert run(make_stage(wide), shuffled) == alone
    late = make_stage(wide)
    for job in jobs[:3]:
        late.add(job)
    early = [late.step() for _ in range(9)]
    results = run(late, jobs[3:])
    for outputs in early:
        for output in reversed(outputs):
            codes, end = results.get(output.job_id, ([], output.finish))
            results[output.job_id] = (codes, end)
    assert {job: end for job, (_, end) in results.items()} == {j: e for j, (_, e) in alone.items()}
    assert all(results[job.id] == alone[job.id] for job in jobs[3:])


@pytest.mark.parametrize("prefill_tokens", [32, 64, 1000])
def test_how_much_of_a_prompt_a_step_takes_does_not_matter(prefill_tokens: int) -> None:
    job = tiny_job("long", 150, 30, sampling=MIXED)
    expected = run(make_stage(), [job])
    stage = make_stage(replace(CAPACITY, prefill_tokens=prefill_tokens))
    stage.add(job)
    steps = 0
    while not (outputs := stage.step()):
        steps += 1
    assert steps == -(-160 // prefill_tokens) - 1  # five blocks of 32
    results = finish(stage)
    assert ([*outputs[0].codes, *results["long"][0]], results["long"][1]) == expected["long"]


def test_a_long_prompt_does_not_stall_the_others() -> None:
    stage = make_stage(replace(CAPACITY, prefill_tokens=32))
    stage.add(tiny_job("short", 5, 100, min_codes=100))
    stage.step()
    stage.add(tiny_job("long", 160, 5, min_codes=5))
    for _ in range(4):
        assert [output.job_id for output in stage.step()] == ["short"]
    assert {output.job_id for output in stage.step()} == {"short", "long"}


def test_seeds_decide_and_repeat() -> None:
    jobs = [tiny_job("x", 40, 30, min_codes=30, sampling=replace(MIXED, seed=s)) for s in (1, 1, 2)]
    first, again, other = (run(make_stage(), [job])["x"] for job in jobs)
    assert first == again != other


# --- prefix cache -------------------------------------------------------------------------------


def with_prompt(name: str, rest: int) -> StageJob:
    """Jobs that share their first 100 tokens."""
    voice, text = tiny_job("voice", 100, 1).input, tiny_job(name, rest, 1).input
    joined = StageInput(
        voice.ids + text.ids, voice.positions + text.positions, text.next_position, None
    )
    return tiny_job(name, 1, 15, input=joined, sampling=MIXED)


def test_a_prompt_is_computed_once_and_nothing_changes() -> None:
    jobs = [with_prompt(f"text {i}", 20 + i) for i in range(3)]
    expected = {job.id: run(make_stage(), [job])[job.id] for job in jobs}
    stage = make_stage(replace(CAPACITY, prefix_tokens=512))
    assert run(stage, jobs[:1])[jobs[0].id] == expected[jobs[0].id]
    assert (stage.prefixes.hits, len(stage.prefixes)) == (0, 3)  # 120 tokens: three whole blocks
    assert run(stage, jobs[1:2])[jobs[1].id] == expected[jobs[1].id]
    assert stage.prefixes.hits == 3
    assert run(stage, jobs) == expected
    stage.add(jobs[2])
    assert stage.step()  # what is left of the prompt fits one step
    assert finish(stage)


def test_jobs_that_come_together_share_a_prompt_too() -> None:
    jobs = [with_prompt(f"text {i}", 20 + i) for i in range(4)]
    expected = {job.id: run(make_stage(), [job])[job.id] for job in jobs}
    stage = make_stage(replace(CAPACITY, prefix_tokens=512))
    assert run(stage, jobs) == expected
    assert stage.prefixes.hits == 9  # three blocks for each of the later three


def test_other_positions_are_another_prompt() -> None:
    stage = make_stage(replace(CAPACITY, prefix_tokens=512))
    job = tiny_job("x", 100, 15)
    moved = replace(job.input, positions=tuple(p + 1 for p in job.input.positions))
    other = replace(job, input=moved)
    expected = run(make_stage(), [other])
    run(stage, [job])
    assert run(stage, [other]) == expected
    assert stage.prefixes.hits == 0


def test_the_prefix_cache_is_bounded() -> None:
    stage = make_stage(replace(CAPACITY, prefix_tokens=160))
    for i in range(6):
        run(stage, [tiny_job(f"{i}", 130, 2)])
    assert len(stage.prefixes) == 5


# --- slots --------------------------------------------------------------------------------------


def test_an_abort_at_any_step_frees_the_slot_and_leaves_the_others() -> None:
    jobs = [replace(job, priority=i) for i, job in enumerate(some_jobs()[:4])]
    expected = run(make_stage(), jobs)
    for victim in (0, 3):
        for after in (0, 1, 2, 5, 15):
            stage = make_stage()
            seen: dict[str, list[int]] = defaultdict(list)
            for job in jobs:
                stage.add(job)
            for _ in range(after):
                for output in stage.step():
                    seen[output.job_id] += output.codes
            alive = stage.running
            stage.abort(jobs[victim].id)
            assert alive - stage.running in (0, 1)
            for job, (codes, _) in finish(stage).items():
                assert job != jobs[victim].id
                seen[job] += codes
            assert stage.free_slots == CAPACITY.sequences
            for job in jobs:
                if job is not jobs[victim]:
                    assert seen[job.id] == expected[job.id][0]
            assert run(stage, jobs) == expected


def test_aborted_while_waiting_and_unknown_ids() -> None:
    stage = make_stage(replace(CAPACITY, sequences=1))
    for name in ("a", "b", "c"):
        stage.add(tiny_job(name, 5, 5))
    stage.abort("b")
    stage.abort("nobody")
    assert stage.running == 2
    assert set(finish(stage)) == {"a", "c"}
    stage.add(tiny_job("b", 5, 5))  # the id may come again


def test_the_most_urgent_job_takes_the_next_free_slot() -> None:
    stage = make_stage(replace(CAPACITY, sequences=1))
    for name, priority in (("first", 5.0), ("late", 9.0), ("soon", 2.0), ("also soon", 2.0)):
        stage.add(tiny_job(name, 5, 3, min_codes=3, priority=priority))
    ends: list[str] = []
    while stage.running:
        ends += [output.job_id for output in stage.step() if output.finish]
    assert ends == ["soon", "also soon", "first", "late"]


def test_what_can_never_fit_is_refused() -> None:
    stage = make_stage()
    stage.add(tiny_job("fits", 150, 51))  # the last code is never read again
    good = tiny_job("x", 150, 51)
    refused: dict[str, Callable[[], StageJob]] = {
        "needs 201 tokens": lambda: replace(good, max_codes=52),
        "positions": lambda: replace(good, input=replace(good.input, next_position=10**6)),
        "nothing": lambda: replace(good, max_codes=0),
        "vocabulary": lambda: replace(good, input=replace(good.input, ids=(10**6,) * 150)),
        "already": lambda: replace(good, id="fits"),
    }
    for message, job in refused.items():
        with pytest.raises(InvalidRequest, match=message):
            stage.add(job())
    with pytest.raises(InvalidRequest, match="nothing"):
        stage.add(replace(good, input=StageInput((), (), 0)))
    assert stage.running == 1


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 7), st.sampled_from("asss")), max_size=40))
def test_memory_is_fixed_whatever_comes_and_goes(events: list[tuple[int, str]]) -> None:
    jobs = some_jobs()
    stage = make_stage(replace(CAPACITY, sequences=2, prefix_tokens=128))
    running: set[str] = set()
    for which, event in events:
        job = jobs[which]
        if event == "s":
            running -= {output.job_id for output in stage.step() if output.finish}
        elif job.id in running:
            stage.abort(job.id)
            running.remove(job.id)
        else:
            stage.add(job)
            running.add(job.id)
        assert stage.running == len(running)
        assert len(stage.prefixes) <= 4
    assert set(finish(stage)) == running
    assert stage.free_slots == 2


@pytest.mark.parametrize("which", range(4))
def test_bfloat16_speaks_from_a_folder(tmp_path: Path, which: int) -> None:
    save_stage(tiny_network(tiny_config(which)), tmp_path)
    stage = TorchStage.open(tmp_path, CAPACITY, torch.bfloat16)
    codes, _ = run(stage, [tiny_job("x", 40, 20, min_codes=20)])["x"]
    assert len(codes) == 20


def test_int8_codes_do_not_depend_on_company_and_are_mostly_the_same() -> None:
    network = tiny_network(tiny_config())
    stage = TorchStage(network, CAPACITY, int8=True)
    together = run(stage, some_jobs())
    alone = {job.id: run(stage, [job])[job.id] for job in some_jobs()}
    assert together == alone
    exact = run(make_stage(), some_jobs())
    firsts = [together[name][0][:1] == exact[name][0][:1] for name in exact]
    assert sum(firsts) >= len(firsts) - 2
