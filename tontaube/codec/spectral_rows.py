"""The small bundle's codec network for serving: new frames of several streams → filter steps.

Every convolution remembers its past, so that no frame is computed twice, and the rows of all
streams go through each matrix together. A row's result depends on neither the others nor on how
its stream was cut (see ``backend.linear``), which keeps the pulse phase from drifting in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tontaube.backend.linear import Product, pack
from tontaube.codec.dualcodec import DualCodec
from tontaube.codec.layers import ConvNeXtBlock, ResidualVectorQuantizer, WeightNormConv1d
from tontaube.codec.spectral import SpectralDecoder

Tails = tuple[Tensor, ...]
"""The last inputs of each convolution of one stream, [kernel - 1 or fewer, D] each."""


@dataclass(frozen=True, slots=True)
class NewFrames:
    """What one stream gives to a pass."""

    codes: Tensor  # int64 [streams, n], n >= 0
    tails: Tails
    final: bool  # nothing follows: what the convolutions still hold comes out as well


class SpectralRows:
    """The weights of DualCodec's semantic decoder and of the spectral decoder, in float32."""

    def __init__(self, network: DualCodec) -> None:
        decoder = network.dac.decoder
        assert isinstance(decoder, SpectralDecoder)
        *semantic, last = network.convnext_decoder
        assert isinstance(last, WeightNormConv1d)
        self._semantic_table = _table(network.semantic_vq)[0]
        self._tables = _table(network.dac.quantizer)
        self._to_latent = _pointwise(last.weight, last.bias)
        self._up = _pointwise(decoder.up.weight, decoder.up.bias)
        self._width = decoder.dim
        self._semantic = [_Block(block) for block in semantic]
        self._pre = _Block(decoder.pre)
        self._blocks = [_Block(block) for block in decoder.blocks]
        self._norm = _LayerNorm(decoder.norm)
        self._head = pack(decoder.head.weight.float(), decoder.head.bias.float())

    def start(self) -> Tails:
        """A stream before its first frame: zeros, as at the edge of a whole decode."""
        blocks = [*self._semantic, self._pre, *self._blocks]
        return tuple(torch.zeros(block.left, block.width) for block in blocks)

    def run(self, streams: Sequence[NewFrames]) -> list[tuple[Tensor, Tails]]:
        """For each stream the decoder's outputs [steps, 3·BINS + 2] that are certain by now, and
        what it goes on with."""
        tails = [iter(stream.tails) for stream in streams]
        kept: list[list[Tensor]] = [[] for _ in streams]
        final = [stream.final for stream in streams]

        def through(block: _Block, rows: list[Tensor]) -> list[Tensor]:
            past = [next(tail) for tail in tails]
            out, after = block(rows, past, final)
            for list_, tail in zip(kept, after, strict=True):
                list_.append(tail)
            return out

        rows = [F.embedding(stream.codes[0], self._semantic_table) for stream in streams]
        for block in self._semantic:
            rows = through(block, rows)
        rows = _each(self._to_latent, rows)
        for number, stream in enumerate(streams):
            for codes, table in zip(stream.codes[1:], self._tables, strict=False):
                rows[number] = rows[number] + F.embedding(codes, table)
        rows = through(self._pre, rows)
        rows = [up.reshape(-1, self._width) for up in _each(self._up, rows)]  # [STEPS · n, dim]
        for block in self._blocks:
            rows = through(block, rows)
        out = _each(lambda x: self._head(self._norm(x)), rows)
        return list(zip(out, map(tuple, kept), strict=True))


class _Block:
    """A ConvNeXtBlock over rows [n, D] of several streams."""

    def __init__(self, block: nn.Module) -> None:
        assert isinstance(block, ConvNeXtBlock)
        self.left, self.right = block.pad
        taps = block.dwconv.weight.detach().float()[:, 0]  # [D, kernel]
        self.width, self._kernel = taps.shape
        self._taps = taps.t().contiguous()
        self._bias = _float(block.dwconv.bias)
        self._norm = _LayerNorm(block.norm)
        gain = torch.ones(self.width) if block.gamma is None else _float(block.gamma)
        self._inner = pack(block.pwconv1.weight.float(), block.pwconv1.bias.float())
        self._outer = pack(
            block.pwconv2.weight.float() * gain[:, None], block.pwconv2.bias.float() * gain
        )

    def __call__(
        self, rows: list[Tensor], tails: list[Tensor], final: list[bool]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Rows that follow ``tails`` → rows that are certain, and the tails after them."""
        mixed, residual, after = [], [], []
        for x, tail, ends in zip(rows, tails, final, strict=True):
            known = torch.cat((tail, x, x.new_zeros(self.right, self.width)) if ends else (tail, x))
            count = max(0, len(known) - self._kernel + 1)
            mixed.append(self._convolve(known, count))
            residual.append(known[self.left : self.left + count])
            after.append(known[count:].clone())
        out = _each(lambda y: self._outer(F.gelu(self._inner(self._norm(y)))), mixed)
        return [x + y for x, y in zip(residual, out, strict=True)], after

    def _convolve(self, x: Tensor, count: int) -> Tensor:
        """Depthwise, tap by tap: unlike a convolution kernel's, its sums do not depend on where a
        row lies in ``x`` [count + kernel - 1, D]."""
        total = self._bias.expand(count, -1).clone()
        for number, tap in enumerate(self._taps):
            total.addcmul_(x[number : number + count], tap)
        return total


class _LayerNorm:
    def __init__(self, norm: nn.LayerNorm) -> None:
        self._gain, self._bias = _float(norm.weight), _float(norm.bias)
        self._eps = norm.eps

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self._gain.shape, self._gain, self._bias, self._eps)


def _each(function: Callable[[Tensor], Tensor], rows: list[Tensor]) -> list[Tensor]:
    """Something that works row by row, done for all streams at once."""
    counts = [len(x) for x in rows]
    if not sum(counts):
        return [function(x.new_zeros(1, x.shape[1]))[:0] for x in rows]
    return list(torch.split(function(torch.cat(rows)), counts))


def _table(quantizer: ResidualVectorQuantizer) -> list[Tensor]:
    """For each codebook the latents of its codes, float32 [codes, D]."""
    return [
        F.linear(q.codebook.weight, q.out_proj.weight[..., 0], q.out_proj.bias).detach().float()
        for q in quantizer.stack
    ]


def _pointwise(weight: Tensor, bias: Tensor | None) -> Product:
    assert bias is not None
    return pack(weight[..., 0].float(), bias.float())


def _float(value: Tensor | None) -> Tensor:
    assert value is not None
    return value.detach().float().contiguous()
