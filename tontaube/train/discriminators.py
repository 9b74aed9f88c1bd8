"""Spectra of audio → how real they look; what the decoder of the codec is trained against.

Distances to the target teach a mean of what could have been there, which sounds dull. A
discriminator sees complex spectrograms at one resolution (as in Jang et al., UnivNet, 2021, and
Défossez et al., EnCodec, 2022), compressed so that quiet parts count; one, drawn at random, judges
in each step.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WINDOWS = (512, 1024, 2048)  # samples at 24 kHz
LIKENESS = 2.0  # of the features' distance beside the verdict
SHARE = 3.0  # of the discriminator's gradient, as a multiple of the reconstruction's norm


class Discriminator(nn.Module):
    """Audio [B, n] → verdicts [B, 1, n / hop, bands] and the features of every layer."""

    window: Tensor

    def __init__(self, window: int, channels: int = 16) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(window), persistent=False)
        wide = 2 * channels

        def layer(
            before: int, after: int, kernel: tuple[int, int], dilation: int, step: int
        ) -> nn.Conv2d:
            padding = (dilation * (kernel[0] // 2), kernel[1] // 2)
            made = nn.Conv2d(before, after, kernel, (1, step), padding, (dilation, 1))
            # the usual initial weights would leave nothing of the signal after six layers
            nn.init.kaiming_normal_(made.weight, a=0.1)
            return made

        self.layers = nn.ModuleList(
            (
                layer(2, channels, (3, 9), 1, 1),
                layer(channels, wide, (3, 9), 1, 2),
                layer(wide, wide, (3, 9), 2, 2),
                layer(wide, wide, (3, 9), 4, 2),
                layer(wide, wide, (3, 3), 1, 1),
            )
        )
        self.verdict = layer(wide, 1, (3, 3), 1, 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, audio: Tensor) -> tuple[Tensor, list[Tensor]]:
        n = len(self.window)
        spectra = torch.stft(audio, n, n // 4, window=self.window, return_complex=True)
        real, imaginary = spectra.real, spectra.imag
        # |X|^0.3 with X's phase
        gain = (real.square() + imaginary.square() + 1e-6).pow(-0.35)
        x = torch.stack((real * gain, imaginary * gain), 1).transpose(2, 3)  # [B, 2, time, bins]
        x = x.contiguous(memory_format=torch.channels_last)
        features = []
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for layer in self.layers:
                x = F.leaky_relu(layer(x), 0.1)
                features.append(x)
            verdict: Tensor = self.verdict(x)
        return verdict.float(), features


@dataclass(frozen=True, slots=True)
class Judgement:
    """One step's: the discriminator's own loss, what it says of the decoder, and the gradient that
    the decoder's audio gets from both it and the reconstruction [B, n]."""

    figures: dict[str, float]
    gradient: Tensor


class Judges(nn.Module):
    """Discriminators of all resolutions and the rule by which their gradients are weighed: the
    discriminator's is scaled to the norm of the reconstruction's (as EnCodec does), so that no
    weight has to be found."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.judges = nn.ModuleList(Discriminator(window) for window in WINDOWS)
        self.norms: Tensor
        self.register_buffer("norms", torch.zeros(len(WINDOWS)))
        self._rng = random.Random(seed)

    def judge(
        self,
        audio: Tensor,
        target: Tensor,
        reconstruction: nn.Module,
        optimizer: torch.optim.Optimizer,
        share: float,
    ) -> Judgement:
        """Teach one discriminator the difference of ``audio`` and ``target`` [B, n]; then what the
        decoder shall do about it. ``share`` 0..1: how much the discriminator has to say."""
        at = self._rng.randrange(len(self.judges))
        judge = self.judges[at]
        made = audio.detach().requires_grad_()
        real, real_features = judge(target)
        fake, _ = judge(made.detach())
        loss = F.relu(1 - real).mean() + F.relu(1 + fake).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
        optimizer.step()
        verdict, features = judge(made)
        likeness = torch.stack(
            [
                (mine.float() - theirs.detach().float()).abs().mean() / theirs.float().abs().mean()
                for mine, theirs in zip(features, real_features, strict=True)
            ]
        ).mean()
        (opinion,) = torch.autograd.grad(LIKENESS * likeness - verdict.mean(), made)
        rec = reconstruction(made, target)
        (gradient,) = torch.autograd.grad(rec, made)
        norm, aim = opinion.norm(), gradient.norm()
        smooth = norm if self.norms[at] == 0 else 0.95 * self.norms[at] + 0.05 * norm
        self.norms[at] = smooth
        figures = {
            "rec": rec.item(),
            "judge": loss.item(),
            "likeness": likeness.item(),
            "verdict": verdict.mean().item(),
        }
        return Judgement(figures, gradient + share * SHARE * aim / (smooth + 1e-12) * opinion)
