"""Audio → stacked log-mel frames: the small bundle's content features and encoder input."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

N_FFT, STEP = 960, 240  # 40 ms windows every 10 ms at 24 kHz
PAD = (N_FFT - STEP) // 2


def mel_filters(n_fft: int, bands: int, sample_rate: int) -> Tensor:
    """Triangular HTK-mel filters [bands, n_fft / 2 + 1]."""

    def mel(f: float) -> float:
        return 2595 * math.log10(1 + f / 700)

    top = mel(sample_rate / 2)
    edges = [700 * (10 ** (top * i / (bands + 1) / 2595) - 1) for i in range(bands + 2)]
    bins = torch.linspace(0, sample_rate / 2, n_fft // 2 + 1)
    rows = [
        torch.minimum((bins - low) / (mid - low), (high - bins) / (high - mid)).clamp(min=0)
        for low, mid, high in zip(edges, edges[1:], edges[2:], strict=False)
    ]
    return torch.stack(rows)


class LogMel(nn.Module):
    """Audio [B, n] (n a multiple of 240·stack) → [B, bands·stack, n / (240·stack)]."""

    filters: Tensor
    window: Tensor

    def __init__(self, bands: int = 80, stack: int = 8, sample_rate: int = 24_000) -> None:
        super().__init__()
        self.stack = stack
        filters = mel_filters(N_FFT, bands, sample_rate)
        self.register_buffer("filters", filters, persistent=False)
        self.register_buffer("window", torch.hann_window(N_FFT), persistent=False)

    @property
    def dim(self) -> int:
        """Width of a feature frame."""
        return self.filters.shape[0] * self.stack

    def forward(self, audio: Tensor) -> Tensor:
        spectrum = torch.stft(
            F.pad(audio, (PAD, PAD)), N_FFT, STEP, window=self.window, center=False,
            return_complex=True,
        ).abs()  # fmt: skip
        mel = (torch.log(self.filters @ spectrum + 1e-3) + 3) / 2  # [B, bands, T·stack]
        batch, bands, steps = mel.shape
        frames = steps // self.stack
        mel = mel[:, :, : frames * self.stack].reshape(batch, bands, frames, self.stack)
        return mel.transpose(2, 3).reshape(batch, bands * self.stack, frames)
