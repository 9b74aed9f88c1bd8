"""How far decoded audio is from what it should be, by ear: spectra at several resolutions."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn

from tontaube.codec.logmel import mel_filters
from tontaube.train.corpus import SAMPLE_RATE

RESOLUTIONS = {2048: 80, 1024: 80, 512: 64, 256: 32}  # window → mel bands


def magnitude(spectrum: Tensor) -> Tensor:
    """|spectrum|; three times faster than ``abs`` of a complex tensor, and smooth at zero."""
    return (spectrum.real.square() + spectrum.imag.square() + 1e-9).sqrt()


class Reconstruction(nn.Module):
    """Log-mel, spectral-convergence and log-magnitude distances at random resolutions."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._filters = {n: mel_filters(n, bands, SAMPLE_RATE) for n, bands in RESOLUTIONS.items()}
        self._windows = {n: torch.hann_window(n) for n in RESOLUTIONS}
        self._rng = random.Random(seed)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        total = x.new_zeros(())
        for n in self._rng.sample(list(RESOLUTIONS), 2):
            a, b = (
                magnitude(torch.stft(w, n, n // 4, window=self._windows[n], return_complex=True))
                for w in (x, y)
            )
            mel = torch.log(self._filters[n] @ a + 1e-3) - torch.log(self._filters[n] @ b + 1e-3)
            log = (torch.log(a + 1e-3) - torch.log(b + 1e-3)).abs().mean()
            total = total + mel.abs().mean() + 0.5 * (a - b).norm() / (b.norm() + 1e-3) + 0.2 * log
        return 2 * total
