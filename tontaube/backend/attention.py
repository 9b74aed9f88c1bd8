"""One step's attention over the slots' keys and values: decoding rows at once, then prompts.

A row's result must depend on its own keys alone, to the bit, whoever is decoded beside it and
however far the longest of them reaches (see ``linear``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

SPAN = 64  # decoding looks at whole spans of keys, so that lengths share kernels
_SUMMED = 256  # values that the BLAS adds up at once; more it would part by how many there are


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens ``start..stop`` of the sequence in ``slot``: a part of its prefill."""

    slot: int
    start: int
    stop: int


RowAttention = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""One query a row: q [R, heads, d], k and v [R, kv_heads, span, d], mask [R, 1, span] added →
[R, heads · d]."""


def row_attention(repeated: int, d: int, dtype: torch.dtype) -> RowAttention:
    """The quickest one here that keeps rows apart, for ``repeated`` heads to a key-value head."""
    quick = dtype == torch.float32 and _parts_keep_rows_apart(repeated, d)
    return in_parts if quick else _in_one


class StepAttention:
    """All decoding rows at once, then piece by piece."""

    def __init__(
        self,
        by_head: Tensor,
        lengths: Tensor,
        longest: int,
        pieces: tuple[Piece, ...],
        attend: RowAttention,
    ) -> None:
        """``by_head`` [2 · layers, slots, kv_heads, capacity, d]: keys and values by turns;
        ``lengths`` int [rows]: the keys of the slots that decode, ``longest`` of them; ``attend``
        of ``row_attention``."""
        self._attend = attend
        self._rows = len(lengths)
        self._pieces = pieces
        span = -(-longest // SPAN) * SPAN
        self._decoding = by_head[:, : self._rows, :, :span].unbind()
        self._prefilling = [by_head[:, p.slot : p.slot + 1, :, : p.stop].unbind() for p in pieces]
        seen = torch.arange(span) < lengths[:, None, None]
        self._row_mask = _additive(seen, by_head.dtype)  # [rows, 1, span]
        self._masks = [_causal(piece, by_head.dtype) for piece in pieces]

    def __call__(self, layer: int, q: Tensor) -> Tensor:
        """q [M, heads, d] over the slots' keys and values → [M, heads · d]."""
        mixed = []
        if self._rows:
            k, v = self._decoding[2 * layer], self._decoding[2 * layer + 1]
            mixed.append(self._attend(q[: self._rows], k, v, self._row_mask))
        first = self._rows
        for piece, memory, mask in zip(self._pieces, self._prefilling, self._masks, strict=True):
            queries = q[first : first + piece.stop - piece.start].transpose(0, 1)[None]
            out = _attention(queries, memory[2 * layer], memory[2 * layer + 1], mask)
            mixed.append(out[0].transpose(0, 1).flatten(1))
            first += piece.stop - piece.start
        return torch.cat(mixed) if len(mixed) > 1 else mixed[0]


def in_parts(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """A RowAttention of a few plain products, several times as quick as torch's fused kernel."""
    repeated, scale = q.shape[1] // k.shape[1], q.shape[2] ** -0.5
    mixed = []
    for head in range(k.shape[1]):
        queries = q[:, head * repeated : (head + 1) * repeated]
        keys, values = k[:, head], v[:, head]
        weights = torch.baddbmm(mask, queries, keys.transpose(1, 2), alpha=scale).softmax(-1)
        total = torch.bmm(weights[..., :_SUMMED], values[:, :_SUMMED])
        for at in range(_SUMMED, k.shape[2], _SUMMED):
            total.baddbmm_(weights[..., at : at + _SUMMED], values[:, at : at + _SUMMED])
        mixed.append(total)
    return (torch.cat(mixed, 1) if len(mixed) > 1 else mixed[0]).flatten(1)


def _in_one(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return _attention(q.unsqueeze(2), k, v, mask.unsqueeze(1)).flatten(1)


@lru_cache(maxsize=16)
def _parts_keep_rows_apart(repeated: int, d: int) -> bool:
    """Whether that is so with this machine's BLAS."""
    generator = torch.Generator().manual_seed(0)
    k, v = torch.randn((2, 5, 1, 1_024, d), generator=generator)
    q = torch.randn((5, repeated, d), generator=generator)
    lengths = torch.tensor([700, 3, 64, 330, 500])

    def attended(rows: int, span: int) -> Tensor:
        mask = _additive(torch.arange(span) < lengths[:rows, None, None], torch.float32)
        return in_parts(q[:rows], k[:rows, :, :span], v[:rows, :, :span], mask)

    whole = attended(5, 1_024)
    return all(
        torch.equal(attended(rows, span), whole[:rows])
        for rows in (1, 2, 5)
        for span in range(704, 1_024, SPAN)
    )


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    out: Tensor = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return out


def _causal(piece: Piece, dtype: torch.dtype) -> Tensor:
    queries = torch.arange(piece.start, piece.stop)
    return _additive(torch.arange(piece.stop) <= queries[:, None], dtype)  # [stop - start, stop]


def _additive(seen: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, float("-inf"))
