"""Latent frames → audio by a source and a filter, and the matching encoder.

The network gives, every 10 ms, a pitch, a voicing gate, a magnitude and a phase for the harmonic
part and a magnitude for the noise part; a pulse train and noise go through them and one inverse
STFT. All of it is continuous in the network's outputs, so that rounding cannot make it jump.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tontaube.codec.base import Window
from tontaube.codec.layers import ConvNeXtBlock
from tontaube.codec.logmel import N_FFT, PAD, STEP

BINS = N_FFT // 2 + 1
STEPS = 8  # spectral steps a frame
REACH = 5  # steps beside a sample that its pulses and windows touch
REFERENCE_PITCH = 150.0  # Hz, at a pitch output of 0
TOP = 11_000.0  # Hz, highest harmonic
NOISE_STEPS = 512  # length of the looped noise: 5.12 s


@dataclass(frozen=True, slots=True)
class Filter:
    """What the network says about each step: [B, BINS, S] magnitudes (log) and phase, [B, S] pitch
    (Hz) and gate (0..1)."""

    harmonic: Tensor
    phase: Tensor
    noise: Tensor
    pitch: Tensor
    voicing: Tensor  # logit

    def steps(self, first: int, last: int) -> Filter:
        """The steps ``first`` … ``last`` (exclusive)."""
        return Filter(
            *(value[..., first:last] for value in
              (self.harmonic, self.phase, self.noise, self.pitch, self.voicing))
        )  # fmt: skip

    def copy(self) -> Filter:
        """In memory of its own."""
        return Filter(
            *(value.clone() for value in
              (self.harmonic, self.phase, self.noise, self.pitch, self.voicing))
        )  # fmt: skip

    def then(self, later: Filter) -> Filter:
        """The steps of both, one after the other."""
        pairs = (
            (self.harmonic, later.harmonic),
            (self.phase, later.phase),
            (self.noise, later.noise),
            (self.pitch, later.pitch),
            (self.voicing, later.voicing),
        )
        return Filter(*(torch.cat(pair, -1) for pair in pairs))


def between_steps(values: Tensor) -> Tensor:
    """Values at step centres [B, S] → linearly interpolated to samples [B, S·240], ends held."""
    padded = F.pad(values[:, None], (1, 1), mode="replicate")[:, 0]
    ramp = (torch.arange(STEP, dtype=values.dtype) + 0.5) / STEP - 0.5
    ramp = ramp.to(values.device)
    before, here, after = padded[:, :-2, None], padded[:, 1:-1, None], padded[:, 2:, None]
    early = here + (here - before) * ramp
    late = here + (after - here) * ramp
    return torch.where(ramp < 0, early, late).flatten(1)


def pulse_train(cycles: Tensor, pitch: Tensor, gate: Tensor) -> Tensor:
    """Phase in cycles (float64), pitch in Hz and gate, each [B, n] → band-limited pulses [B, n]:
    every harmonic below 11 kHz at unit amplitude, the topmost faded in, so that the sum is
    continuous in the pitch."""
    angle = (2 * math.pi * (cycles - cycles.floor())).float()
    count = TOP / pitch
    whole = count.floor()
    half = 2 * torch.sin(angle / 2)
    near = half.abs() < 2e-3
    closed = torch.sin((whole + 0.5) * angle) / torch.where(near, torch.ones_like(half), half)
    total = torch.where(near, whole + 0.5, closed) - 0.5
    return gate * (total + (count - whole) * torch.cos((whole + 1) * angle))


def overlap_add(frames: Tensor) -> Tensor:
    """Windowed frames [B, S, 960], 240 apart → samples [B, S·240] centred on the steps."""
    batch, steps, _ = frames.shape
    parts = frames.reshape(batch, steps, 4, STEP)
    total = frames.new_zeros(batch, steps + 3, STEP)
    for i in range(4):
        total[:, i : i + steps] += parts[:, :, i]
    # hann² at 75 % overlap sums to 1.5 inside; the utterance's very ends fade
    return total.flatten(1)[:, PAD : PAD + steps * STEP] / 1.5


class SpectralEncoder(nn.Module):
    """Feature frames [B, features, T] → acoustic latents [B, latent, T]."""

    def __init__(self, features: int, dim: int, hidden: int, latent: int, blocks: int = 2) -> None:
        super().__init__()
        self.inp = nn.Conv1d(features, dim, 1)
        self.blocks = nn.Sequential(
            *(ConvNeXtBlock(dim, hidden, kernel=3, right=1, scale=0.1) for _ in range(blocks))
        )
        self.out = nn.Conv1d(dim, latent, 1)

    def forward(self, features: Tensor) -> Tensor:
        out: Tensor = self.out(self.blocks(self.inp(features)))
        return out


class SpectralDecoder(nn.Module):
    """Latents [B, latent, T] → Filter for 8 steps a frame → audio [B, T·1920]."""

    window: Tensor
    noise: Tensor
    sample_rate = 24_000
    hop = STEP * STEPS

    def __init__(self, latent: int, dim: int, hidden: int, blocks: int = 5) -> None:
        super().__init__()
        self.dim = dim
        self.pre = ConvNeXtBlock(latent, 2 * latent, kernel=3, right=1, scale=0.1)
        self.up = nn.Conv1d(latent, STEPS * dim, 1)
        # only the first block looks ahead: with REACH that is one frame, and one more by `pre`
        self.blocks = nn.Sequential(
            *(
                ConvNeXtBlock(dim, hidden, kernel=7, right=0 if i else STEPS - REACH, scale=0.1)
                for i in range(blocks)
            )
        )
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, 3 * BINS + 2)
        self.register_buffer("window", torch.hann_window(N_FFT), persistent=False)
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(2, BINS, NOISE_STEPS, generator=generator) * math.sqrt(0.5)
        self.register_buffer("noise", noise, persistent=False)
        with torch.no_grad():
            self.head.weight.mul_(0.3)
            self.head.bias[: 3 * BINS].zero_()
            self.head.bias[2 * BINS : 3 * BINS] = -2.0
        self.right_context = 2

    @property
    def loop(self) -> Tensor:
        """Complex noise of unit power [BINS, NOISE_STEPS], the same in every stream."""
        return torch.complex(self.noise[0].float(), self.noise[1].float())

    def filter(self, latents: Tensor) -> Filter:
        """Latents [B, latent, T] → Filter with 8·T steps."""
        x = self.up(self.pre(latents))
        batch, _, frames = x.shape
        x = x.reshape(batch, STEPS, self.dim, frames).permute(0, 2, 3, 1)
        x = self.blocks(x.reshape(batch, self.dim, frames * STEPS))
        return self.read(self.head(self.norm(x.transpose(1, 2))))

    def read(self, out: Tensor) -> Filter:
        """What the head says [B, S, 3·BINS + 2] → Filter."""
        out = out.transpose(1, 2)
        pitch = out[:, 3 * BINS] if out.dtype == torch.float64 else out[:, 3 * BINS].float()
        out = out.float()
        return Filter(
            out[:, :BINS].clamp(max=6),
            torch.tanh(out[:, BINS : 2 * BINS]) * math.pi,
            out[:, 2 * BINS : 3 * BINS].clamp(max=6),
            REFERENCE_PITCH * torch.exp(pitch.clamp(-1.3, 1.3)),
            out[:, 3 * BINS + 1],
        )

    def spectra(self, source: Tensor) -> Tensor:
        """Pulses [B, n + 720] (360 samples more at either end) → STFT [B, BINS, n / 240]."""
        return torch.stft(
            source, N_FFT, STEP, window=self.window.float(), center=False, return_complex=True
        )

    def shape(self, pulses: Tensor, filter_: Filter, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Pulse spectra and noise [B, BINS, S] through the filter → samples [B, S·240], and the
        harmonic part's spectrum."""
        harmonic = torch.polar(torch.exp(filter_.harmonic), filter_.phase) * pulses / (N_FFT / 4)
        spectrum = harmonic + torch.exp(filter_.noise) * noise
        frames = torch.fft.irfft(spectrum.transpose(1, 2), N_FFT) * self.window.float()
        return overlap_add(frames), harmonic

    def render(
        self, everything: Filter, window: Window, phase: Tensor | None, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The filter from ``window.start`` on (one frame before ``keep_from`` or more) and the loop
        → kept samples [1, m] and the pulse phase (cycles, float64 [1]) one frame before
        ``keep_to``."""
        total = everything.pitch.shape[1]
        keep = STEPS * (window.keep_from - window.start), STEPS * (window.keep_to - window.start)
        first = max(0, keep[0] - STEPS)  # pulses start one frame early
        last = total if window.final else min(total, keep[1] + REACH)
        margin = min(1, first)  # one step more on the left, for the interpolation
        at = everything.steps(first - margin, last)
        pitch = between_steps(at.pitch)[:, margin * STEP :]
        gate = between_steps((at.voicing + 0.5).clamp(0, 1))[:, margin * STEP :]
        start = torch.zeros(1, dtype=torch.float64, device=pitch.device) if phase is None else phase
        advance = torch.cumsum(pitch.double() / self.sample_rate, 1)
        pulses = pulse_train(start[:, None] + advance, pitch.float(), gate)
        begin = max(first, keep[0] - 2)  # steps whose windows reach a kept sample
        end = min(total, keep[1] + 2)
        pulses = F.pad(pulses, (PAD if first == begin else 0, PAD))
        offset = (begin - first) * STEP - (0 if first == begin else PAD)
        stft = self.spectra(pulses[:, offset : offset + (end - begin) * STEP + 2 * PAD])
        index = torch.arange(begin, end, device=pitch.device) + STEPS * window.start
        audio, _ = self.shape(
            stft, everything.steps(begin, end), noise[:, index % NOISE_STEPS][None]
        )
        audio = audio[:, (keep[0] - begin) * STEP : (keep[1] - begin) * STEP]
        carried = (keep[1] - STEPS - first) * STEP
        after = start + advance[:, carried - 1] if carried > 0 else start
        return audio, after - after.floor()
