"""Fifty and more real jobs for each stage of the mini bundle, and running and comparing them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from tontaube.assembly import open_grammar
from tontaube.backend.base import StageModule
from tontaube.backend.network import StageNetwork
from tontaube.bundle import Bundle
from tontaube.stages.acoustic import acoustic_job
from tontaube.stages.reading import Grammar, Reading
from tontaube.stages.semantic import Window, semantic_job
from tontaube.tokens import Vocabulary
from tontaube.types import STREAMS, Codes, Continuation, Sampling, Segment, StageJob, Voice

TEXTS = (
    "Good morning, and welcome.",
    "The boat that left the harbour in the evening came back before dawn with an empty net.",
    "Nobody knew.",
    "She counted the coins twice, put them back, and said nothing about the one that was missing.",
    "Turn left at the old mill, then follow the river until you see a white gate.",
    "Why would anyone want to do that on a Sunday?",
    "In the end it was the smallest of the three machines that did nearly all of the work.",
)
LONGEST = 32  # codes a job
FRAMES = 30  # of a piece that is refined

Results = dict[str, tuple[list[int], str | None]]


def mini_jobs(bundle: Bundle, stage: int) -> list[StageJob]:
    """With and without a prompt; first, middle and last segments; after another request."""
    grammar = open_grammar(bundle)
    jobs: list[StageJob] = []
    for prompted in (False, True):
        for i, text in enumerate(TEXTS):
            case = _Case(grammar, prompted, i, text)
            jobs += case.semantic() if stage == 0 else case.acoustic(stage)
    return jobs


def window_after(bundle: Bundle, frames: int) -> StageJob:
    """A job of CB0 for a second segment, after ``frames`` of the first."""
    case = _Case(open_grammar(bundle), prompted=False, number=0, text=TEXTS[1])
    return case.window_after(frames)


@dataclass(frozen=True)
class _Case:
    grammar: Grammar
    prompted: bool
    number: int
    text: str

    def semantic(self) -> list[StageJob]:
        before, after = (TEXTS[(self.number + step) % len(TEXTS)] for step in (-1, 1))
        previous, following = Segment(0, before, 0, 0, False), Segment(2, after, 0, 0, True)
        first, middle, last = (Segment(i, self.text, 0, 0, i == 2) for i in range(3))
        # written text takes more places than its frames, or fewer: both ways of a marker
        c0 = self._codes(40 + 90 * (self.number % 2))[0].tolist()
        going_on = replace(self._reading(), continues=Continuation(before, self._codes(50)))
        windows = {
            "only": (self._reading(), Window(replace(first, last=True))),
            "first": (self._reading(), Window(first, following=following)),
            "middle": (self._reading(), Window(middle, previous, c0, following)),
            "last": (self._reading(), Window(last, previous, c0)),
            "going on": (
                going_on,
                Window(middle, going_on.before, going_on.continues.codes[0].tolist()),  # type: ignore[union-attr]
            ),
        }
        jobs = [semantic_job(*case, 0, self._name(name)) for name, case in windows.items()]
        return [replace(job, max_codes=min(job.max_codes, LONGEST)) for job in jobs]

    def window_after(self, frames: int) -> StageJob:
        before, segment = Segment(0, TEXTS[0], 0, 0, False), Segment(1, self.text, 0, 0, True)
        c0 = self._codes(frames)[0].tolist()
        window = Window(segment, before, c0)
        return semantic_job(self._reading(), window, 0, f"after {frames} frames")

    def acoustic(self, stage: int) -> list[StageJob]:
        lower = [row.tolist() for row in self._codes(FRAMES)[: stage + 1]]
        target, lower = lower[stage], lower[:stage]
        first, last = (Segment(i, self.text, 0, 0, i == 1) for i in range(2))
        going_on = replace(
            self._reading(), continues=Continuation(TEXTS[self.number - 1], self._codes(50))
        )
        return [
            acoustic_job(self._reading(), first, lower, [], self._name("whole")),
            acoustic_job(self._reading(), first, lower, target[:12], self._name("later piece")),
            acoustic_job(self._reading(), last, lower, [], self._name("last")),
            acoustic_job(going_on, last, lower, [], self._name("going on")),
        ]

    def _reading(self) -> Reading:
        codes = self._codes(160 if self.prompted else 0, seed=99)
        greedy = Sampling(temperature=0.0)
        control = self.grammar.tokenizer.control("english", "conversational")
        return Reading(
            grammar=self.grammar,
            voice=Voice("v", "V", "english", "conversational", codes),
            control=control,
            semantic=greedy,
            acoustic=greedy,
            tries=1,
        )

    def _codes(self, frames: int, seed: int | None = None) -> Codes:
        random = np.random.default_rng(self.number if seed is None else seed)
        sizes = self.grammar.vocabularies[STREAMS - 1].sizes
        return np.stack([random.integers(0, size, frames) for size in sizes])

    def _name(self, kind: str) -> str:
        return f"{self.number} {kind}{' with a prompt' if self.prompted else ''}"


def run(stage: StageModule, jobs: Iterable[StageJob], together: int = 8) -> Results:
    """Every job's codes and end, at most ``together`` at once."""
    waiting = list(jobs)[::-1]
    codes: dict[str, list[int]] = {}
    ends: dict[str, str | None] = {}
    while waiting or stage.running:
        while waiting and stage.running < together:
            stage.add(waiting.pop())
        for output in stage.step():
            codes.setdefault(output.job_id, []).extend(output.codes)
            ends[output.job_id] = output.finish
    return {job: (codes[job], end) for job, end in ends.items()}


def differences(
    jobs: Sequence[StageJob], expected: Results, found: Results, network: StageNetwork
) -> list[tuple[str, float]]:
    """The jobs whose codes differ, and how far apart the two likeliest logits were where they
    part: a gap that float rounding can close is no difference in meaning."""
    assert expected.keys() == found.keys() == {job.id for job in jobs}
    return [
        (job.id, _gap(job, expected[job.id], found[job.id], network))
        for job in jobs
        if expected[job.id] != found[job.id]
    ]


def _gap(
    job: StageJob,
    one: tuple[list[int], str | None],
    other: tuple[list[int], str | None],
    network: StageNetwork,
) -> float:
    pairs = zip(one[0], other[0], strict=False)
    same = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one[0]), len(other[0])))
    head = Vocabulary(network.config).head_ids()
    ids = [*job.input.ids, *(head[code] for code in one[0][:same])]
    later = range(job.input.next_position, job.input.next_position + same)
    with torch.no_grad():
        hidden = network(torch.tensor([ids]), torch.tensor([[*job.input.positions, *later]]))
        logits = network.head(hidden[0, -1])
    for code, value in job.bias.items():
        logits[code] += value
    if same < job.min_codes:
        logits[network.config.semantic_vocab_size :] = float("-inf")
    first, second = logits.topk(2).values.tolist()
    return float(first - second)
