"""Fifty and more real jobs for each stage of the mini bundle, and running and comparing them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from tontaube.assembly import open_grammar
from tontaube.backend.base import StageModule
from tontaube.backend.network import StageNetwork
from tontaube.backend.torch import Capacity, TorchStage
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
LONGEST = 24  # codes a job
FRAMES = 24  # of a piece that is refined

Results = dict[str, tuple[list[int], str | None]]


@dataclass(frozen=True)
class Recordings:
    """What the mini bundle's voice said, in codes: the real prompts, pasts and lower rows."""

    grammar: Grammar
    spoken: tuple[Codes, ...]  # [4, T] of each of TEXTS

    @classmethod
    def make(cls, bundle: Bundle) -> Recordings:
        """Have the torch backend speak all of TEXTS, as the bundle draws codes."""
        grammar = open_grammar(bundle)
        rules = grammar.description.sampling
        drawing = Sampling(rules.temperature, rules.top_p, rules.top_k, seed=7)
        reading = _reading(grammar, np.zeros((STREAMS, 0), np.int64), drawing)
        alone = [Segment(0, text, 0, 0, last=True) for text in TEXTS]
        rows: list[list[list[int]]] = [[] for _ in TEXTS]
        for k in range(STREAMS):
            stage = TorchStage.open(bundle.stage(k), Capacity(tokens=1600))
            jobs = [
                acoustic_job(reading, segment, lower, [], segment.text)
                if k
                else semantic_job(reading, Window(segment), 0, segment.text)
                for segment, lower in zip(alone, rows, strict=True)
            ]
            results = run(stage, jobs)
            for segment, written in zip(alone, rows, strict=True):
                written.append(results[segment.text][0])
        return cls(grammar, tuple(np.array(written) for written in rows))

    def past(self, frames: int, first: int = 0) -> Codes:
        """Speech of so many frames, from text number ``first`` on."""
        count = len(self.spoken)
        codes = np.concatenate([self.spoken[(first + i) % count] for i in range(count)], axis=1)
        assert codes.shape[1] >= frames
        return codes[:, :frames]


def mini_jobs(recordings: Recordings, stage: int) -> list[StageJob]:
    """With and without a prompt; first, middle and last segments; after another request."""
    jobs: list[StageJob] = []
    texts = TEXTS if stage else TEXTS[:5]  # CB0 has five jobs for each, the others four
    for prompted in (False, True):
        for i, text in enumerate(texts):
            case = _Case(recordings, prompted, i, text)
            jobs += case.semantic() if stage == 0 else case.acoustic(stage)
    return jobs


def window_after(recordings: Recordings, frames: int) -> StageJob:
    """A job of CB0 for a second segment, after ``frames`` of the first."""
    before, segment = Segment(0, TEXTS[0], 0, 0, False), Segment(1, TEXTS[1], 0, 0, True)
    reading = _reading(recordings.grammar, recordings.past(0))
    window = Window(segment, before, recordings.past(frames)[0].tolist())
    return semantic_job(reading, window, 0, f"after {frames} frames")


@dataclass(frozen=True)
class _Case:
    recordings: Recordings
    prompted: bool
    number: int
    text: str

    def semantic(self) -> list[StageJob]:
        before, after = (TEXTS[(self.number + step) % len(TEXTS)] for step in (-1, 1))
        previous, following = Segment(0, before, 0, 0, False), Segment(2, after, 0, 0, True)
        first, middle, last = (Segment(i, self.text, 0, 0, i == 2) for i in range(3))
        # written text takes more places than its frames, or fewer: both ways of a marker
        c0 = self._past(40 + 90 * (self.number % 2))[0].tolist()
        continuation = Continuation(before, self._past(50))
        going_on = replace(self._reading(), continues=continuation)
        windows = {
            "only": (self._reading(), Window(replace(first, last=True))),
            "first": (self._reading(), Window(first, following=following)),
            "middle": (self._reading(), Window(middle, previous, c0, following)),
            "last": (self._reading(), Window(last, previous, c0)),
            "going on": (
                going_on,
                Window(middle, going_on.before, continuation.codes[0].tolist()),
            ),
        }
        jobs = [semantic_job(*case, 0, self._name(name)) for name, case in windows.items()]
        return [replace(job, max_codes=min(job.max_codes, LONGEST)) for job in jobs]

    def acoustic(self, stage: int) -> list[StageJob]:
        """Of the speech of this text: what is known of it are its own lower rows."""
        own = self.recordings.spoken[self.number][:, :FRAMES]
        lower = [row.tolist() for row in own[: stage + 1]]
        target, lower = lower[stage], lower[:stage]
        first, last = (Segment(i, self.text, 0, 0, i == 1) for i in range(2))
        continuation = Continuation(TEXTS[self.number - 1], self._past(50))
        going_on = replace(self._reading(), continues=continuation)
        return [
            acoustic_job(self._reading(), first, lower, [], self._name("whole")),
            acoustic_job(self._reading(), first, lower, target[:8], self._name("later piece")),
            acoustic_job(self._reading(), last, lower, [], self._name("last")),
            acoustic_job(going_on, last, lower, [], self._name("going on")),
        ]

    def _reading(self) -> Reading:
        prompt = self.recordings.past(160 if self.prompted else 0)
        return _reading(self.recordings.grammar, prompt)

    def _past(self, frames: int) -> Codes:
        """Of the text before this one, and as much as it takes of those that follow."""
        return self.recordings.past(frames, self.number - 1)

    def _name(self, kind: str) -> str:
        return f"{self.number} {kind}{' with a prompt' if self.prompted else ''}"


def _reading(grammar: Grammar, prompt: Codes, sampling: Sampling | None = None) -> Reading:
    greedy = Sampling(temperature=0.0)
    return Reading(
        grammar=grammar,
        voice=Voice("v", "V", "english", "conversational", prompt),
        control=grammar.tokenizer.control("english", "conversational"),
        semantic=sampling or greedy,
        acoustic=greedy,
        tries=1,
    )


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
