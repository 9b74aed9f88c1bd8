"""Matrices in int8: close to what they were, and rows that do not know of each other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tontaube.backend.linear import Int8Linear, PackedLinear, pack
from tontaube.codec.tensors import to_int8

torch.set_num_threads(1)


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 2**16))
@settings(deadline=None, max_examples=50)
def test_rounding_is_half_a_step_of_each_row(rows: int, width: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((rows, width), generator=generator) * torch.logspace(-3, 3, rows)[:, None]
    whole, scales = to_int8(x)
    assert whole.dtype == torch.int8 and scales.shape == (rows, 1)
    assert int(whole.abs().max()) == 127  # the same to both sides
    assert bool(((whole * scales - x).abs() <= 0.5001 * scales).all())


def test_a_row_of_zeros_stays_one() -> None:
    whole, scales = to_int8(torch.zeros(2, 5))
    assert not whole.any() and bool(scales.isfinite().all())
    product = Int8Linear(torch.zeros(3, 5), torch.ones(3))
    assert torch.equal(product(torch.zeros(2, 5)), torch.ones(2, 3))


@pytest.mark.parametrize(("out", "width"), [(24, 16), (768, 256), (98, 640), (2_050, 512)])
def test_products_are_close(out: int, width: int) -> None:
    torch.manual_seed(0)
    weight, bias, x = torch.randn(out, width), torch.randn(out), torch.randn(12, width)
    exact = pack(weight, bias)(x)
    assert ((exact - PackedLinear(weight, bias)(x)).norm() / exact.norm()).item() < 1e-5
    found = pack(weight, bias, int8=True)(x)
    assert ((found - exact).norm() / exact.norm()).item() < 0.02
    half = pack(weight.bfloat16(), bias, int8=True)(x.bfloat16())
    assert half.dtype == torch.float32
    assert ((half - exact).norm() / exact.norm()).item() < 0.02


SHAPES = [(24, 16), (768, 256), (98, 640), (4_098, 256), (256, 768), (1_445, 256), (2_048, 2_048)]


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize(("out", "width"), SHAPES)
def test_a_row_does_not_depend_on_the_others(out: int, width: int, int8: bool) -> None:
    torch.manual_seed(0)
    product = pack(torch.randn(out, width), torch.randn(out), int8=int8)
    x = torch.randn(73, width)
    together = product(x)
    for rows in (1, 2, 7, 20, 64):
        apart = torch.cat([product(part) for part in x.split(rows)])
        assert torch.equal(apart, together)
    out_, rest = torch.empty(73, out), torch.ones(73, out)
    product.into(x, out_)
    assert torch.equal(out_, together)
    product.add_to(rest, x)
    torch.testing.assert_close(rest, together + 1, rtol=1e-5, atol=1e-4)
