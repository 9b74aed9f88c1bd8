"""Attention of decoding rows: right, and each row by itself."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tontaube.backend.attention import StepAttention, in_parts, row_attention

torch.set_num_threads(1)


@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (4, 2), (3, 1), (8, 8)])
@pytest.mark.parametrize("span", [64, 256, 320, 1_024])
def test_parts_equal_the_fused_kernel(heads: int, kv_heads: int, span: int) -> None:
    torch.manual_seed(0)
    q = torch.randn(3, heads, 16)
    k, v = torch.randn(2, 3, kv_heads, span, 16)
    mask = torch.zeros(3, 1, span)
    mask[1, :, span // 2 :] = float("-inf")
    fused = F.scaled_dot_product_attention(
        q[:, :, None], k, v, attn_mask=mask[:, None], enable_gqa=True
    )
    torch.testing.assert_close(in_parts(q, k, v, mask), fused.flatten(1))


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 2), (3, 1), (2, 1)])
@pytest.mark.parametrize("others", [10, 300, 900])
def test_a_row_does_not_depend_on_the_others(heads: int, kv_heads: int, others: int) -> None:
    """Neither on how many there are nor on how much they look back on."""
    torch.manual_seed(0)
    memory = torch.randn(2, 6, kv_heads, 1_024, 64)  # one layer's keys and values
    q = torch.randn(6, heads, 64)
    attend = row_attention(heads // kv_heads, 64, torch.float32)
    for length in (1, 64, 200, 511, 780):
        alone = StepAttention(memory, torch.tensor([length]), length, (), attend)(0, q[:1])
        lengths = torch.tensor([length, *[others] * 5])
        together = StepAttention(memory, lengths, max(length, others), (), attend)(0, q)
        assert torch.equal(together[:1], alone)
