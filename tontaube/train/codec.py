"""Trains the spectral DualCodec on a corpus: reconstruction, phonemes in C0, pitch, commitment.

What makes C0 (content encoder and semantic VQ) is annealed first and then frozen, so that CB0's
training can start while the rest of the codec goes on; when all codes are final, the decoder alone
can be polished while CB1..CB3 train.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tontaube.codec.build import SpectralConfig, build_spectral
from tontaube.codec.dualcodec import DualCodec
from tontaube.codec.layers import VectorQuantizer
from tontaube.codec.logmel import STEP, LogMel, mel_filters
from tontaube.codec.spectral import STEPS, SpectralDecoder, pulse_train
from tontaube.train.codes import load
from tontaube.train.corpus import HOP, SAMPLE_RATE, Item, read
from tontaube.train.progress import Progress, cosine
from tontaube.train.teacher import PHONEMES, PITCH_RATE, VOICED_ABOVE

PER_FRAME = 4  # phoneme labels a frame
BATCH, CROP = 12, 12  # utterances; frames of each that are decoded
RESOLUTIONS = {2048: 80, 1024: 80, 512: 64, 256: 32}  # window → mel bands
HELD_OUT = 100  # items at the corpus' start that no step sees
PEAK = 1e-3  # learning rate
DEPTHS = (0, 0, 1, 2, 3, 3, 3)  # acoustic streams in a step, drawn evenly


class Quantizing(nn.Module):
    """A quantizer in training: straight-through values, losses, and revival of dead codes."""

    usage: Tensor

    def __init__(self, quantizer: VectorQuantizer) -> None:
        super().__init__()
        self._quantizer = [quantizer]  # in a list: its parameters belong to the codec
        self.register_buffer("usage", torch.ones(quantizer.codebook.num_embeddings))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # [B, D, T] -> quantized, loss
        quantizer = self._quantizer[0]
        z = quantizer.in_proj(x)
        codes = quantizer.nearest(z)
        q = quantizer.codebook(codes).transpose(1, 2)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        if torch.is_grad_enabled():
            self._revive(z.detach(), codes)
        return quantizer.out_proj(z + (q - z).detach()), loss

    @torch.no_grad()
    def _revive(self, z: Tensor, codes: Tensor) -> None:
        weight = self._quantizer[0].codebook.weight
        counts = torch.bincount(codes.flatten(), minlength=len(self.usage)).float()
        self.usage.mul_(0.98).add_(counts, alpha=0.02)
        dead = (self.usage < 0.01).nonzero().flatten()
        values = z.transpose(1, 2).reshape(-1, z.shape[1])
        dead = dead[torch.randperm(len(dead))[: len(values) // 8]]
        weight[dead] = values[torch.randperm(len(values))[: len(dead)]].to(weight.dtype)
        self.usage[dead] = 0.5


@dataclass(frozen=True, slots=True)
class Batch:
    """Audio [B, T·1920], labels [B, T, 4] (-100: none), and of the crops: target [B, C·1920],
    pulses with 360 samples beside, pitch in Hz [B, C·8] with 0 for unvoiced, first frames [B]."""

    audio: Tensor
    labels: Tensor
    target: Tensor
    pulses: Tensor
    pitch: Tensor
    crops: Tensor


def teacher_pulses(item: Item, first: int, count: int) -> np.ndarray:
    """The teacher's own pulse train for samples ``first`` … ``first + count`` (zeros outside)."""
    total = item.frames * HOP
    at = (np.arange(total) + 0.5) / SAMPLE_RATE * PITCH_RATE - 0.5
    curve = item.pitch.astype(np.float64)
    pitch = np.maximum(np.interp(at, np.arange(len(curve)), curve), VOICED_ABOVE)
    voiced = np.interp(at, np.arange(len(curve)), (curve > VOICED_ABOVE).astype(np.float64))
    cycles = np.cumsum(pitch) / SAMPLE_RATE
    low, high = max(0, first), min(total, first + count)
    cut = (torch.from_numpy(x[None, low:high]) for x in (cycles, pitch, voiced))
    c, p, v = cut
    pulses = pulse_train(c, p.float(), v.float())[0].numpy()
    return np.pad(pulses, (low - first, first + count - high))


def make_batch(items: list[Item], rng: random.Random) -> Batch:
    """Pad a list of utterances and cut one crop from each."""
    longest = max(item.frames for item in items)
    audio = torch.zeros(len(items), longest * HOP)
    labels = torch.full((len(items), longest, PER_FRAME), -100)
    pulses, pitch, crops = [], [], []
    for row, item in enumerate(items):
        samples = item.samples[: item.frames * HOP].astype(np.float32) / 32768
        audio[row, : len(samples)] = torch.from_numpy(samples)
        labels[row, : item.frames] = torch.from_numpy(item.phoneme_labels(PER_FRAME))
        crop = rng.randrange(item.frames - CROP + 1)
        crops.append(crop)
        pulses.append(teacher_pulses(item, crop * HOP - 360, CROP * HOP + 720))
        steps = item.pitch_at(SAMPLE_RATE / STEP, item.frames * STEPS)
        pitch.append(steps[crop * STEPS : (crop + CROP) * STEPS])
    target = torch.stack([audio[i, c * HOP : (c + CROP) * HOP] for i, c in enumerate(crops)])
    source, curve = (torch.from_numpy(np.stack(x).astype(np.float32)) for x in (pulses, pitch))
    return Batch(audio, labels, target, source, curve, torch.tensor(crops))


def crops(x: Tensor, first: Tensor) -> Tensor:
    """CROP frames of each row of [B, D, T] from its own first frame on."""
    frames = (first[:, None] + torch.arange(CROP))[:, None]
    return torch.gather(x, 2, frames.expand(-1, x.shape[1], -1))


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


class CodecTraining(nn.Module):
    """The codec with what only training needs: phoneme classifier, quantizer statistics."""

    def __init__(self, codec: DualCodec, latent: int, phonemes: int) -> None:
        super().__init__()
        self.codec = codec
        self.features = LogMel()
        self.classifier = nn.Conv1d(latent, PER_FRAME * phonemes, 1)
        self.phonemes = phonemes
        quantizers = [*codec.semantic_vq.stack, *codec.dac.quantizer.stack]
        self.quantizing = nn.ModuleList(Quantizing(q) for q in quantizers)
        self.reconstruction = Reconstruction()
        generator = torch.Generator().manual_seed(1)
        self._noise = torch.randn(2, 1 << 23, generator=generator) * 0.5**0.5

    def semantic_parameters(self) -> list[nn.Parameter]:
        """What C0 depends on."""
        quantizer = self.codec.semantic_vq.stack[0]
        parts = (self.codec.convnext_encoder, quantizer.in_proj, quantizer.codebook)
        return [p for part in parts for p in part.parameters()]

    def codes_in_use(self) -> int:
        """How many C0 codes were used lately."""
        c0 = self.quantizing[0]
        assert isinstance(c0, Quantizing)
        return int((c0.usage > 0.01).sum())

    def polish(self, batch: Batch, codes: Tensor) -> dict[str, Tensor]:
        """The losses that the decoder answers for, given final codes [B, 4, T]."""
        with torch.no_grad():
            latents = crops(self.codec.latents(codes), batch.crops)
        return self._decoder_losses(latents, batch)

    def forward(self, batch: Batch, depth: int, frozen: bool = False) -> dict[str, Tensor]:
        """All losses of a step, by name; ``depth`` acoustic streams take part; ``frozen``: C0 is
        final."""
        codec = self.codec
        features = self.features(batch.audio)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.set_grad_enabled(not frozen):
                content = codec.convnext_encoder(features)
                quantized, commitment = self.quantizing[0](content)
            semantic = codec.convnext_decoder(quantized)
            logits = self.classifier(semantic)
            rest = codec.dac.encoder(features) - semantic
            latents, rest = crops(semantic, batch.crops), crops(rest, batch.crops)
            for quantizing in self.quantizing[1 : 1 + depth]:
                part, loss = quantizing(rest)
                rest, latents, commitment = rest - part, latents + part, commitment + loss
        losses = self._decoder_losses(latents, batch)
        losses["vq"] = commitment.float()
        losses["ph"] = self._phoneme_loss(logits.float(), batch.labels)
        return losses

    def _decoder_losses(self, latents: Tensor, batch: Batch) -> dict[str, Tensor]:
        decoder = self.codec.dac.decoder
        assert isinstance(decoder, SpectralDecoder)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            filter_ = decoder.filter(latents)
        noise = self._draw_noise(filter_.noise.shape)
        audio, harmonic = decoder.shape(decoder.spectra(batch.pulses), filter_, noise)
        losses = {"rec": self.reconstruction(audio, batch.target)}
        voiced = (batch.pitch > VOICED_ABOVE).float()
        distance = (torch.log(filter_.pitch / batch.pitch.clamp(min=VOICED_ABOVE))).abs()
        losses["f0"] = (voiced * distance).sum() / voiced.sum().clamp(min=1)
        losses["uv"] = F.binary_cross_entropy_with_logits(filter_.voicing, voiced)
        aim = decoder.spectra(F.pad(batch.target, (360, 360)))
        level = magnitude(aim)
        scale = level + 0.1 * level.mean((1, 2), keepdim=True) + 1e-3
        losses["coh"] = (magnitude(harmonic - aim) / scale).clamp(max=3).mean()
        return losses

    def _draw_noise(self, shape: torch.Size) -> Tensor:
        """A random stretch of prepared complex noise: drawing afresh costs 6 % of a step."""
        first = int(torch.randint(self._noise.shape[1] - shape.numel(), ()))
        real, imaginary = self._noise[:, first : first + shape.numel()].view(2, *shape)
        return torch.complex(real, imaginary)

    def _phoneme_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        batch, _, frames = logits.shape
        by_quarter = logits.reshape(batch, PER_FRAME, self.phonemes, frames).permute(0, 3, 1, 2)
        return F.cross_entropy(by_quarter.flatten(0, 2), labels.flatten(), ignore_index=-100)


WEIGHTS = {"rec": 1.0, "vq": 1.0, "ph": 2.0, "f0": 2.0, "uv": 0.5, "coh": 0.3}


def usable(corpus: Path, held_out: int) -> list[Item]:
    """Items long enough to crop, by length; the first ``held_out`` of the corpus are left out."""
    items = list(read(corpus))[held_out:]
    return sorted((i for i in items if CROP + 2 <= i.frames <= 110), key=lambda i: i.frames)


@dataclass(frozen=True, slots=True)
class Plan:
    """Minutes of work in all, and until C0 is frozen."""

    minutes: float = 60
    semantic_minutes: float = 27


def train(corpus: Path, folder: Path, config: SpectralConfig, plan: Plan) -> DualCodec:
    """Train for a budget of working minutes, resuming what ``folder`` holds. The corpus may grow
    meanwhile. ``folder/semantic.pt`` appears when C0 is frozen."""
    rng = random.Random()
    codec = build_spectral(config)
    model = CodecTraining(codec, config.latent, PHONEMES)
    optimizer = build_optimizer(model)
    progress = Progress(folder, plan.minutes, {"model": model, "optimizer": optimizer})
    items: list[Item] = []
    while progress.running:
        if not items or progress.step % 1000 == 0:
            items = usable(corpus, HELD_OUT)
            print(f"{len(items)} items", flush=True)
        early = min(1.0, progress.spent / 60 / plan.semantic_minutes)
        if early == 1.0 and not (folder / "semantic.pt").exists():
            torch.save(codec.state_dict(), folder / "semantic.pt")
        scales = cosine(progress.fraction, progress.step), cosine(early, progress.step, floor=0.0)
        for group, scale in zip(optimizer.param_groups, scales, strict=True):
            group["lr"] = PEAK * scale
        first = rng.randrange(len(items) - BATCH)
        batch = make_batch(items[first : first + BATCH], rng)
        losses = model(batch, rng.choice(DEPTHS), frozen=early == 1.0)
        total = torch.stack([WEIGHTS[name] * loss for name, loss in losses.items()]).sum()
        optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        progress.advance()
        if progress.step % 100 == 0:
            used = model.codes_in_use()
            progress.log("train", used=used, **{n: v.item() for n, v in losses.items()})
    return codec


@dataclass(frozen=True, slots=True)
class Polish:
    """What the decoder alone goes on with: audio, its codes, and how much louder it shall speak
    than the audio that was encoded."""

    corpus: Path
    codes: Path
    trained: Path  # the folder of the codec's run
    gain: float = 1.0


def polish(source: Polish, folder: Path, config: SpectralConfig, minutes: float) -> None:
    """Go on with the decoder alone; codes stay as they are. A louder target shows the losses more
    of what lies under their floor."""
    rng = random.Random()
    model = CodecTraining(build_spectral(config), config.latent, PHONEMES)
    model.load_state_dict(_trained(source.trained))
    decoder = model.codec.dac.decoder
    assert isinstance(decoder, SpectralDecoder)
    decoder.amplify(source.gain)
    parameters = list(decoder.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=PEAK, betas=(0.8, 0.99), fused=True)
    progress = Progress(folder, minutes, {"model": model, "optimizer": optimizer})
    coded = {item.id: torch.from_numpy(item.codes) for item in load(source.codes)}
    items = [item for item in usable(source.corpus, HELD_OUT) if item.id in coded]
    while progress.running:
        for group in optimizer.param_groups:
            group["lr"] = 0.7 * PEAK * cosine(progress.fraction, progress.step)
        first = rng.randrange(len(items) - BATCH)
        chosen = items[first : first + BATCH]
        batch = make_batch(chosen, rng)
        batch = replace(batch, target=batch.target * source.gain)
        longest = batch.labels.shape[1]
        codes = torch.stack([F.pad(coded[i.id], (0, longest - i.frames)) for i in chosen])
        losses = model.polish(batch, codes)
        total = torch.stack([WEIGHTS[name] * loss for name, loss in losses.items()]).sum()
        optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        progress.advance()
        if progress.step % 100 == 0:
            progress.log("polish", **{n: v.item() for n, v in losses.items()})


def _trained(folder: Path) -> dict[str, Tensor]:
    saved: dict[str, dict[str, Tensor]] = torch.load(folder / "checkpoint.pt", weights_only=True)
    return saved["model"]


def build_optimizer(model: CodecTraining) -> torch.optim.AdamW:
    """AdamW with what makes C0 in a group of its own (the second)."""
    early = model.semantic_parameters()
    known = {id(p) for p in early}
    groups = [{"params": [p for p in model.parameters() if id(p) not in known]}, {"params": early}]
    return torch.optim.AdamW(groups, lr=PEAK, betas=(0.8, 0.99), weight_decay=0.0, fused=True)
