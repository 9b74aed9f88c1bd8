"""DAC's convolutional encoder and decoder: audio ↔ latent frames (Kumar et al. 2023).

Layer structure and parameter names are those of the released DualCodec checkpoint (contract,
section 8). Both have a finite reach, so that long signals go through them in windows, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tontaube.codec.base import Window
from tontaube.codec.layers import WeightNormConv1d

DILATIONS = (1, 3, 9)  # of the residual units of a block
KERNEL = 7
ENCODER_WINDOW = 100  # frames an encoder call yields at most: 8 s


class Snake(nn.Module):
    """x + sin²(αx) / α with a learned α per channel (Ziyin et al. 2020)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: Tensor) -> Tensor:  # [B, C, T]
        wave = torch.sin(self.alpha * x).square_()
        return x + wave.mul_((self.alpha + 1e-9).reciprocal())


class WeightNormConvTranspose1d(nn.Module):
    """Upsampling by ``stride`` with a kernel of two strides; old-style weight norm, whose gain is
    one per *input* channel here."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        plain = nn.ConvTranspose1d(inputs, outputs, 2 * stride)
        self.weight_v = nn.Parameter(plain.weight.detach().clone())  # [inputs, outputs, 2·stride]
        self.weight_g = nn.Parameter(self.weight_v.detach().norm(dim=(1, 2), keepdim=True))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.stride, self.padding = stride, math.ceil(stride / 2)

    @property
    def weight(self) -> Tensor:
        """The effective kernel [inputs, outputs, 2·stride]."""
        length: Tensor = self.weight_v.norm(dim=(1, 2), keepdim=True)
        return self.weight_v * (self.weight_g / length)

    def forward(self, x: Tensor) -> Tensor:  # [B, inputs, T] -> [B, outputs, T·stride - stride % 2]
        return F.conv_transpose1d(x, self.weight, self.bias, self.stride, self.padding)


class ResidualUnit(nn.Module):
    """Two convolutions after Snakes, the first one dilated, around a skip."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        padding = (KERNEL - 1) * dilation // 2
        self.block = nn.Sequential(
            Snake(channels),
            WeightNormConv1d(channels, channels, KERNEL, dilation=dilation, padding=padding),
            Snake(channels),
            WeightNormConv1d(channels, channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.block(x)
        return out


class EncoderBlock(nn.Module):
    """Residual units, then downsampling by ``stride`` to twice the channels."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        down = WeightNormConv1d(
            channels, 2 * channels, 2 * stride, stride=stride, padding=math.ceil(stride / 2)
        )
        units = (ResidualUnit(channels, dilation) for dilation in DILATIONS)
        self.block = nn.Sequential(*units, Snake(channels), down)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.block(x)
        return out


class DecoderBlock(nn.Module):
    """Upsampling by ``stride`` to half the channels, then residual units."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        up = WeightNormConvTranspose1d(channels, channels // 2, stride)
        units = (ResidualUnit(channels // 2, dilation) for dilation in DILATIONS)
        self.block = nn.Sequential(Snake(channels), up, *units)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.block(x)
        return out


class DacEncoder(nn.Module):
    """Audio [B, 1, T·hop] → latents [B, latent, T]."""

    def __init__(self, channels: int, rates: Sequence[int], latent: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [WeightNormConv1d(1, channels, KERNEL, padding=KERNEL // 2)]
        for rate in rates:
            layers.append(EncoderBlock(channels, rate))
            channels *= 2
        layers += [Snake(channels), WeightNormConv1d(channels, latent, 3, padding=1)]
        self.block = nn.Sequential(*layers)
        self.hop = math.prod(rates)
        self.context = _encoder_context(rates)  # frames on either side that a frame depends on

    def forward(self, audio: Tensor) -> Tensor:
        frames = audio.shape[-1] // self.hop
        pieces = []
        for first in range(0, frames, ENCODER_WINDOW):
            last = min(frames, first + ENCODER_WINDOW)
            start, stop = max(0, first - self.context), min(frames, last + self.context)
            latents = self.block(audio[..., start * self.hop : stop * self.hop])
            pieces.append(latents[..., first - start : last - start])
        return torch.cat(pieces, -1)


class DacDecoder(nn.Module):
    """Latents [B, latent, T] → audio [B, T·hop - r]; ``r`` is lost at the end where odd rates have
    no output padding (4 samples for the released rates)."""

    def __init__(
        self, latent: int, channels: int, rates: Sequence[int], sample_rate: int = 24_000
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [WeightNormConv1d(latent, channels, KERNEL, padding=KERNEL // 2)]
        for rate in rates:
            layers.append(DecoderBlock(channels, rate))
            channels //= 2
        out = WeightNormConv1d(channels, 1, KERNEL, padding=KERNEL // 2)
        self.model = nn.Sequential(*layers, Snake(channels), out, nn.Tanh())
        self.sample_rate = sample_rate
        self.hop = math.prod(rates)
        self.left_context, self.right_context = _decoder_context(rates)

    def forward(self, latents: Tensor) -> Tensor:
        audio: Tensor = self.model(latents)
        return audio[:, 0]

    def decode_window(self, latents: Tensor, window: Window, state: None) -> tuple[Tensor, None]:
        """Latents [1, latent, T] of a window → kept samples [1, m]; there is no state."""
        first = (window.keep_from - window.start) * self.hop
        last = (window.keep_to - window.start) * self.hop
        return self(latents)[:, first:last], state


def fold_weight_norm(module: nn.Module) -> None:
    """Replace weight-normed convolutions in ``module`` by plain ones with their effective weights:
    faster, for inference only, since the state dict's names are other ones afterwards."""
    for name, child in module.named_children():
        if isinstance(child, WeightNormConv1d):
            setattr(module, name, _plain(child))
        elif isinstance(child, WeightNormConvTranspose1d):
            setattr(module, name, _plain_transposed(child))
        else:
            fold_weight_norm(child)


def _plain(conv: WeightNormConv1d) -> nn.Conv1d:
    outputs, inputs, kernel = conv.weight_v.shape
    with torch.device("meta"):
        plain = nn.Conv1d(inputs, outputs, kernel, conv.stride, conv.padding, conv.dilation)
    plain.weight = nn.Parameter(conv.weight.detach(), requires_grad=False)
    plain.bias = nn.Parameter(conv.bias.detach(), requires_grad=False)
    return plain


def _plain_transposed(conv: WeightNormConvTranspose1d) -> nn.ConvTranspose1d:
    inputs, outputs, kernel = conv.weight_v.shape
    with torch.device("meta"):
        plain = nn.ConvTranspose1d(inputs, outputs, kernel, conv.stride, conv.padding)
    plain.weight = nn.Parameter(conv.weight.detach(), requires_grad=False)
    plain.bias = nn.Parameter(conv.bias.detach(), requires_grad=False)
    return plain


_UNITS_REACH = KERNEL // 2 * sum(DILATIONS)  # of a block's residual units, to either side


def _decoder_context(rates: Sequence[int]) -> tuple[int, int]:
    """Latent frames before and after a frame that its samples depend on."""
    low, high = -(KERNEL // 2), math.prod(rates) - 1 + KERNEL // 2  # inputs of the last convolution
    for rate in reversed(rates):
        low, high = low - _UNITS_REACH, high + _UNITS_REACH
        # Output j of a transposed convolution sums inputs i: 0 <= j + padding - i·rate < 2·rate.
        padding = math.ceil(rate / 2)
        low, high = -((2 * rate - 1 - low - padding) // rate), (high + padding) // rate
    return KERNEL // 2 - low, high + KERNEL // 2


def _encoder_context(rates: Sequence[int]) -> int:
    """Audio frames to either side of a frame that its latent depends on."""
    low, high = -1, 1  # inputs of the last convolution, whose kernel is 3
    for rate in reversed(rates):
        padding = math.ceil(rate / 2)
        low, high = low * rate - padding, high * rate - padding + 2 * rate - 1
        low, high = low - _UNITS_REACH, high + _UNITS_REACH
    low, high = low - KERNEL // 2, high + KERNEL // 2
    hop = math.prod(rates)
    return max(math.ceil(-low / hop), high // hop)
