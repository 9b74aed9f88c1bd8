"""Draws follow the distribution they are asked for and depend on their own row alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiny import tiny_job
from tontaube.backend.sampling import Choice, SamplingRows, draw, uniforms
from tontaube.types import Sampling

torch.set_num_threads(1)


def choose(rows: int, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Choice:
    """The same sampling for each row, whose seeds count up."""
    return Choice(
        temperature=np.full(rows, temperature),
        top_k=np.full(rows, top_k),
        top_p=np.full(rows, top_p),
        uniform=uniforms(np.arange(rows, dtype=np.uint64), np.zeros(rows, np.int64)),
    )


def frequencies(logits: torch.Tensor, **sampling: Any) -> np.ndarray:
    rows = 20_000
    codes = draw(logits.expand(rows, -1), choose(rows, **sampling))
    return np.bincount(codes, minlength=logits.shape[-1]) / rows


def test_uniforms_are_uniform_over_seeds_and_over_steps() -> None:
    zeros = np.zeros(50_000, np.int64)
    counting = np.arange(50_000)
    for seeds, steps in ((counting, zeros), (zeros, counting)):
        numbers = uniforms(seeds.astype(np.uint64), steps)
        assert 0 <= numbers.min() and numbers.max() < 1
        counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
        assert abs(counts / 2_500 - 1).max() < 0.08  # four standard deviations
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.02


def test_frequencies_follow_the_temperature() -> None:
    logits = torch.randn(1, 20, generator=torch.Generator().manual_seed(0)) * 2
    for temperature in (0.5, 1.0, 2.0):
        expected = (logits[0] / temperature).softmax(-1).numpy()
        for top_k in (0, 20):  # sorted whole, or the first candidates only
            seen = frequencies(logits, temperature=temperature, top_k=top_k)
            assert abs(seen - expected).max() < 0.017


def test_top_k_and_top_p_keep_the_likeliest() -> None:
    probabilities = torch.tensor([[0.05, 0.4, 0.1, 0.3, 0.15]])
    logits = probabilities.log()
    expected = np.array([0, 4 / 7, 0, 3 / 7, 0])
    assert abs(frequencies(logits, top_k=2) - expected).max() < 0.017
    assert abs(frequencies(logits, top_p=0.6) - expected).max() < 0.017  # 0.4 alone is too little
    assert frequencies(logits, top_p=0.0)[1] == 1.0
    # of the three likeliest (0.85), 0.8 · 0.85 = 0.68 needs two
    assert abs(frequencies(logits, top_k=3, top_p=0.8) - expected).max() < 0.017


def test_temperature_zero_takes_the_likeliest() -> None:
    logits = torch.randn(30, 100)
    codes = draw(logits, choose(30, temperature=0.0, top_k=50, top_p=0.5))
    assert (codes == logits.argmax(-1).numpy()).all()
    assert (draw(logits, choose(30, temperature=0.9, top_k=1)) == codes).all()


def test_what_is_masked_is_never_drawn() -> None:
    logits = torch.randn(1, 200, generator=torch.Generator().manual_seed(0))
    logits[0, 10:] = float("-inf")
    for top_k in (0, 50, 100):
        assert frequencies(logits, temperature=5.0, top_k=top_k)[10:].sum() == 0


rows = st.tuples(
    st.floats(0.0, 2.0), st.sampled_from([0, 1, 5, 50, 64, 65, 90]), st.floats(0.0, 1.0)
)


@settings(deadline=None, max_examples=40)
@given(st.lists(rows, min_size=1, max_size=12), st.integers(0, 2**31))
def test_a_row_is_drawn_alike_alone_and_in_any_company(
    wanted: list[tuple[float, int, float]], seed: int
) -> None:
    logits = torch.randn(len(wanted), 100, generator=torch.Generator().manual_seed(seed)) * 3
    temperature, top_k, top_p = (np.array(column) for column in zip(*wanted, strict=True))
    seeds = np.arange(len(wanted), dtype=np.uint64) + np.uint64(seed)
    numbers = uniforms(seeds, np.full(len(wanted), 3))
    together = draw(logits, Choice(temperature, top_k, top_p, numbers))
    for i in range(len(wanted)):
        row = slice(i, i + 1)
        alone = Choice(temperature[row], top_k[row], top_p[row], numbers[row])
        assert draw(logits[row], alone) == together[row]


def test_a_jobs_bias_and_shortest_length_hold_for_its_row_only() -> None:
    sampling = SamplingRows(rows=2, codes=12, structural=2, longest=9)
    logits = torch.zeros(2, 12)
    logits[:, 11] = 5.0  # a structural code
    logits[:, 4] = 3.0
    both = np.array([0, 1])
    sampling.begin(0, tiny_job("biased", 4, 9, min_codes=1, bias={4: -4.0, 7: 1.0}))
    sampling.begin(1, tiny_job("plain", 4, 9, min_codes=2))
    assert sampling.draw(both, logits.clone()).tolist() == [7, 4]
    assert sampling.draw(both, logits.clone()).tolist() == [11, 4]
    assert sampling.draw(both, logits.clone()).tolist() == [11, 11]
    sampling.begin(0, tiny_job("next", 4, 9, min_codes=1))  # nothing is left of the bias
    assert sampling.draw(np.array([0]), logits[:1].clone()).tolist() == [4]


def test_seeds_may_be_any_integer() -> None:
    sampling = SamplingRows(rows=3, codes=8, structural=0, longest=9)
    for row, seed in enumerate((-1, 2**64 - 1, 2**80)):
        sampling.begin(row, tiny_job("x", 4, 9, sampling=Sampling(temperature=1.0, seed=seed)))
    codes = sampling.draw(np.arange(3), torch.zeros(3, 8))
    assert codes[0] == codes[1]
