"""Layers that both codec families share: normed convolution, ConvNeXt block, factorized VQ."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class WeightNormConv1d(nn.Module):
    """Conv1d with weight = g·v/|v| over all but the output dimension, parameters ``weight_g``,
    ``weight_v`` and ``bias`` as in the released checkpoints."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 1, *, stride: int = 1, padding: int = 0,
        dilation: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        plain = nn.Conv1d(inputs, outputs, kernel)
        self.weight_v = nn.Parameter(plain.weight.detach().clone())
        self.weight_g = nn.Parameter(self.weight_v.detach().norm(dim=(1, 2), keepdim=True))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.stride, self.padding, self.dilation = stride, padding, dilation

    @property
    def weight(self) -> Tensor:
        """The effective kernel [outputs, inputs, kernel]."""
        norm: Tensor = self.weight_v.norm(dim=(1, 2), keepdim=True)
        return self.weight_v * (self.weight_g / norm)

    def forward(self, x: Tensor) -> Tensor:  # [B, inputs, T] -> [B, outputs, T']
        return F.conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation)


class ConvNeXtBlock(nn.Module):
    """Depthwise convolution, LayerNorm, MLP, residual, on [B, D, T].

    ``right`` is the number of future frames the kernel sees: 0 is causal, (kernel - 1) / 2 centred.
    ``scale`` > 0 adds a learned layer scale.
    """

    def __init__(
        self, dim: int, hidden: int, *, kernel: int = 7, right: int = 3, scale: float = 0.0
    ) -> None:
        super().__init__()
        self.pad = (kernel - 1 - right, right)
        self.dwconv = nn.Conv1d(dim, dim, kernel, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, hidden)
        self.pwconv2 = nn.Linear(hidden, dim)
        self.gamma = nn.Parameter(torch.full((dim,), scale)) if scale else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.dwconv(F.pad(x, self.pad)).transpose(1, 2)  # [B, T, D]
        y = self.pwconv2(F.gelu(self.pwconv1(self.norm(y))))
        if self.gamma is not None:
            y = y * self.gamma
        out: Tensor = x + y.transpose(1, 2)
        return out


class VectorQuantizer(nn.Module):
    """Factorized vector quantizer: nearest code by cosine in a low dimension (Improved VQGAN)."""

    def __init__(self, dim: int, size: int, code_dim: int = 8) -> None:
        super().__init__()
        self.in_proj = WeightNormConv1d(dim, code_dim)
        self.out_proj = WeightNormConv1d(code_dim, dim)
        self.codebook = nn.Embedding(size, code_dim)

    def nearest(self, projected: Tensor) -> Tensor:  # [B, code_dim, T] -> int64 [B, T]
        directions = F.normalize(projected.transpose(1, 2).float(), dim=-1)
        return (directions @ F.normalize(self.codebook.weight.float()).t()).argmax(-1)

    def encode(self, x: Tensor) -> Tensor:
        """Latents [B, D, T] → codes int64 [B, T]."""
        return self.nearest(self.in_proj(x))

    def decode(self, codes: Tensor) -> Tensor:
        """Codes int64 [B, T] → latents [B, D, T]."""
        out: Tensor = self.out_proj(self.codebook(codes).transpose(1, 2))
        return out


class ResidualVectorQuantizer(nn.Module):
    """Quantizers in a row, each on what the ones before left over (SoundStream)."""

    def __init__(self, dim: int, sizes: list[int], code_dim: int = 8) -> None:
        super().__init__()
        self.quantizers = nn.ModuleList(VectorQuantizer(dim, size, code_dim) for size in sizes)

    @property
    def stack(self) -> list[VectorQuantizer]:
        """The quantizers, first to last."""
        return [q for q in self.quantizers if isinstance(q, VectorQuantizer)]

    def encode(self, x: Tensor, streams: int | None = None) -> Tensor:
        """Latents [B, D, T] → codes int64 [B, streams, T]."""
        codes = []
        for quantizer in self.stack[:streams]:
            code = quantizer.encode(x)
            x = x - quantizer.decode(code)
            codes.append(code)
        return torch.stack(codes, 1)

    def decode(self, codes: Tensor) -> Tensor:
        """Codes int64 [B, n, T] → summed latents [B, D, T]; n may be smaller than the stack."""
        return torch.stack(
            [q.decode(c) for q, c in zip(self.stack, codes.unbind(1), strict=False)]
        ).sum(0)
