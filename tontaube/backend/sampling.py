"""Logits of a batch → one code a row, by temperature, top-k, top-p, biases and masks.

A row's draw is a function of its own logits, seed and step alone: it needs one uniform number,
which is hashed from seed and step, so neither the batch nor earlier draws matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tontaube.types import StageJob

Ints = npt.NDArray[np.int64]
Seeds = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_COLD = 1e-4  # temperatures below are zero
_FEW = 64  # up to here ``topk`` finds the candidates; beyond, all are sorted


@dataclass(frozen=True, slots=True)
class Choice:
    """How R rows are drawn; each array is [R]."""

    temperature: Floats  # 0: the likeliest code
    top_k: Ints  # 0: all
    top_p: Floats
    uniform: Floats  # in [0, 1)


def uniforms(seeds: Seeds, steps: Ints) -> Floats:
    """The number in [0, 1) that belongs to each (seed, step): SplitMix64's finalizer, twice."""
    mixed = _mix(_mix(seeds) + steps.astype(np.uint64))  # modulo 2**64
    return (mixed >> np.uint64(12)).astype(np.float64) * 2.0**-52


def draw(logits: Tensor, choice: Choice) -> Ints:
    """Draw a code from each row of ``logits`` float [R, codes] → int [R].

    The candidates are the ``top_k`` likeliest codes, of these the fewest likeliest ones that hold
    ``top_p`` of the probability. A logit of -inf is never drawn unless all of a row are.
    """
    codes = np.empty(len(logits), np.int64)
    greedy = (choice.temperature < _COLD) | (choice.top_k == 1)
    few = ~greedy & (choice.top_k > 0) & (choice.top_k <= _FEW)
    for rows, candidates in ((few, _FEW), (~greedy & ~few, logits.shape[1])):
        if rows.any():
            codes[rows] = _draw_among(_rows(logits, rows), _select(choice, rows), candidates)
    if greedy.any():
        codes[greedy] = _rows(logits, greedy).argmax(-1).numpy()
    return codes


class SamplingRows:
    """The sampling state of a stage's slots: what their jobs ask for, and how far they are.

    ``structural`` is how many of the head's last codes end a job.
    """

    def __init__(self, rows: int, codes: int, structural: int, longest: int) -> None:
        """``longest``: the most codes that a job may want."""
        self._steps = np.zeros(rows, np.int64)  # codes drawn so far
        self._structural = structural
        self._min_codes = np.zeros(rows, np.int64)
        self._temperature = np.zeros(rows)
        self._top_k = np.zeros(rows, np.int64)
        self._top_p = np.ones(rows)
        self._uniforms = np.zeros((rows, longest))  # all of a job's, by step
        self._biased = np.zeros(rows, bool)
        self._bias = torch.zeros(rows, codes)

    def begin(self, row: int, job: StageJob) -> None:
        """Give ``row`` to ``job``."""
        sampling = job.sampling
        self._steps[row] = 0
        self._min_codes[row] = job.min_codes
        self._temperature[row], self._top_p[row] = sampling.temperature, sampling.top_p
        self._top_k[row] = sampling.top_k
        steps = np.arange(job.max_codes)
        seeds = np.full(job.max_codes, sampling.seed % 2**64, np.uint64)
        self._uniforms[row, : job.max_codes] = uniforms(seeds, steps)
        if self._biased[row]:
            self._bias[row] = 0.0
        self._biased[row] = bool(job.bias)
        for code, value in job.bias.items():
            self._bias[row, code] = value

    def draw(self, rows: Ints, logits: Tensor) -> Ints:
        """The next code of each of ``rows`` [R] from its ``logits`` float [R, codes], which may be
        changed in place."""
        if self._biased[rows].any():
            logits += self._bias[torch.from_numpy(rows)]
        steps = self._steps[rows]
        early = steps < self._min_codes[rows]
        if self._structural and early.any():
            logits[torch.from_numpy(early), -self._structural :] = float("-inf")
        choice = Choice(
            temperature=self._temperature[rows],
            top_k=self._top_k[rows],
            top_p=self._top_p[rows],
            uniform=self._uniforms[rows, steps],
        )
        self._steps[rows] = steps + 1
        return draw(logits, choice)


def _draw_among(logits: Tensor, choice: Choice, candidates: int) -> Ints:
    """Draw from the ``candidates`` likeliest codes of each row, by inverting the distribution.

    What is kept are the first ranks, and sums run from the first rank on: neither the number of
    candidates nor what lies behind the kept ones has a part in the result.
    """
    if candidates < logits.shape[1]:
        values, codes = logits.topk(candidates)
    else:
        values, codes = logits.sort(stable=True, dim=-1, descending=True)
    weights = np.exp((values - values[:, :1]).double().numpy() / choice.temperature[:, None])
    sums = weights.cumsum(1)  # [R, candidates]; the first weight is 1
    rows, last = np.arange(len(sums)), sums.shape[1] - 1
    end = np.where(choice.top_k > 0, np.minimum(choice.top_k - 1, last), last)
    nucleus = choice.top_p * sums[rows, end]
    end = np.minimum((sums < nucleus[:, None]).sum(1), end)
    chosen = choice.uniform * sums[rows, end]
    rank = np.minimum((sums <= chosen[:, None]).sum(1), end)
    picked: Ints = codes.numpy()[rows, rank]
    return picked


def _select(choice: Choice, rows: Mask) -> Choice:
    if rows.all():
        return choice
    return Choice(
        temperature=choice.temperature[rows],
        top_k=choice.top_k[rows],
        top_p=choice.top_p[rows],
        uniform=choice.uniform[rows],
    )


def _rows(logits: Tensor, rows: Mask) -> Tensor:
    return logits if rows.all() else logits[torch.from_numpy(rows)]


def _mix(x: Seeds) -> Seeds:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Seeds = x ^ (x >> np.uint64(31))
    return mixed
