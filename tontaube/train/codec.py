"""Trains the spectral DualCodec on a corpus, in two steps: C0, then everything else.

What C0 says is given (``table``): phonemes and nothing else, so that words never hang on what
CB1..CB3 add. The content encoder and the semantic VQ learn to hear it (``semantic``) and are frozen
then; the rest learns to reconstruct (``train``). When all codes are final, the decoder alone can be
polished while CB1..CB3 train (``decoder``).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tontaube.codec.build import SpectralConfig, build_spectral
from tontaube.codec.dualcodec import DualCodec
from tontaube.codec.layers import VectorQuantizer
from tontaube.codec.logmel import LogMel
from tontaube.codec.spectral import SpectralDecoder
from tontaube.train.batches import CROP, Batch, c0_of, crops, make_batch, padded, usable
from tontaube.train.corpus import HOP, Item
from tontaube.train.phonemes import PER_FRAME
from tontaube.train.progress import Progress, cosine
from tontaube.train.reconstruction import Reconstruction, magnitude
from tontaube.train.table import CodeTable
from tontaube.train.teacher import PHONEMES, VOICED_ABOVE

BATCH, SEMANTIC_BATCH = 12, 32  # utterances a step
PEAK = 1e-3  # learning rate
BESIDE = 6  # frames of natural audio on either side of a decoded crop that is read
DEPTHS = (0, 1, 2, 3, 3, 3)  # acoustic streams in a step, drawn evenly


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


class CodecTraining(nn.Module):
    """The codec with what only training needs: phoneme classifier, quantizer statistics."""

    def __init__(self, codec: DualCodec, latent: int, phonemes: int) -> None:
        super().__init__()
        self.codec = codec
        self.features = LogMel()
        self.classifier = nn.Conv1d(latent, PER_FRAME * phonemes, 1)
        self.phonemes = phonemes
        self.quantizing = nn.ModuleList(Quantizing(q) for q in codec.dac.quantizer.stack)
        self.sharpness = nn.Parameter(torch.tensor(20.0))  # of how C0 is heard
        self.reconstruction = Reconstruction()
        generator = torch.Generator().manual_seed(1)
        self._noise = torch.randn(2, 1 << 23, generator=generator) * 0.5**0.5

    def semantic_parameters(self) -> list[nn.Parameter]:
        """What makes C0."""
        parts = (self.codec.convnext_encoder, self.codec.semantic_vq)
        return [p for part in parts for p in part.parameters()]

    def polish(self, batch: Batch, codes: Tensor, own: Tensor) -> dict[str, Tensor]:
        """The losses that the decoder answers for, given final codes [B, 4, T]; ``own`` [B] is 1
        where they are the audio's, 0 where stages predicted them, with a pitch of their own."""
        with torch.no_grad():
            latents = crops(self.codec.latents(codes), batch.crops)
        audio, losses = self._decoder_losses(latents, batch, own)
        return losses | {"said": self._said(audio, batch)}

    def _said(self, audio: Tensor, batch: Batch) -> Tensor:
        """How far decoded crops [B, C·1920] are from being read as their phonemes, by the same
        networks that read them from natural audio; around them lies what was there."""
        beside = F.pad(batch.audio, (BESIDE * HOP, BESIDE * HOP))
        around = zip(beside, audio, batch.crops.tolist(), strict=True)
        width = BESIDE + CROP
        heard = [
            torch.cat((whole[c * HOP :][: BESIDE * HOP], crop,
                       whole[(c + width) * HOP :][: BESIDE * HOP]))
            for whole, crop, c in around
        ]  # fmt: skip
        features = self.features(torch.stack(heard))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            content = self.codec.convnext_encoder(features)
            logits = self.classifier(self.codec.convnext_decoder(content))
        labels = crops(batch.labels.transpose(1, 2), batch.crops).transpose(1, 2)
        return self._phoneme_loss(logits[..., BESIDE:width].float(), labels)

    def read_phonemes(self, audio: Tensor, labels: Tensor, c0: Tensor) -> dict[str, Tensor]:
        """The losses that C0 answers for: phonemes read from its codes, phonemes read from the
        content itself, and how well the codes are heard in it."""
        with torch.no_grad():
            features = self.features(audio)
        (vq,) = self.codec.semantic_vq.stack
        with torch.autocast("cpu", dtype=torch.bfloat16):
            content = self.codec.convnext_encoder(features)
            both = torch.cat((vq.decode(c0), content))
            logits = self.classifier(self.codec.convnext_decoder(both))
            directions = F.normalize(vq.in_proj(content).transpose(1, 2), dim=-1)
            nearness = directions @ F.normalize(vq.codebook.weight, dim=-1).t()
        read, free = logits.float().chunk(2)
        spoken = labels[..., 0] != -100
        closest = nearness[spoken].float()
        return {
            "ph": self._phoneme_loss(read, labels),
            "free": self._phoneme_loss(free, labels),
            "code": F.cross_entropy(self.sharpness * closest, c0[spoken]),
        }

    def forward(self, batch: Batch, c0: Tensor, depth: int) -> dict[str, Tensor]:
        """All losses of a step, by name; ``depth`` acoustic streams take part; ``c0`` [B, T]."""
        codec = self.codec
        with torch.no_grad():
            features = self.features(batch.audio)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.no_grad():
                quantized = codec.semantic_vq.decode(c0[:, None])
            semantic = codec.convnext_decoder(quantized)
            logits = self.classifier(semantic)
            rest = codec.dac.encoder(features) - semantic
            latents, rest = crops(semantic, batch.crops), crops(rest, batch.crops)
            commitment = latents.new_zeros(())
            for quantizing in self.quantizing[:depth]:
                part, loss = quantizing(rest)
                rest, latents, commitment = rest - part, latents + part, commitment + loss
        _, losses = self._decoder_losses(latents, batch, torch.ones(len(latents)))
        losses["vq"] = commitment.float()
        losses["ph"] = self._phoneme_loss(logits.float(), batch.labels)
        return losses

    def _decoder_losses(
        self, latents: Tensor, batch: Batch, own: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The audio of a batch's crops, and how far it is from what it should be."""
        decoder = self.codec.dac.decoder
        assert isinstance(decoder, SpectralDecoder)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            filter_ = decoder.filter(latents)
        noise = self._draw_noise(filter_.noise.shape)
        audio, harmonic = decoder.shape(decoder.spectra(batch.pulses), filter_, noise)
        losses = {"rec": self.reconstruction(audio, batch.target)}
        voiced = (batch.pitch > VOICED_ABOVE).float()
        distance = (torch.log(filter_.pitch / batch.pitch.clamp(min=VOICED_ABOVE))).abs()
        known = voiced * own[:, None]
        losses["f0"] = (known * distance).sum() / known.sum().clamp(min=1)
        losses["uv"] = F.binary_cross_entropy_with_logits(filter_.voicing, voiced)
        aim = decoder.spectra(F.pad(batch.target, (360, 360)))
        level = magnitude(aim)
        scale = level + 0.1 * level.mean((1, 2), keepdim=True) + 1e-3
        losses["coh"] = (magnitude(harmonic - aim) / scale).clamp(max=3).mean()
        return audio, losses

    def _draw_noise(self, shape: torch.Size) -> Tensor:
        """A random stretch of prepared complex noise: drawing afresh costs 6 % of a step."""
        first = int(torch.randint(self._noise.shape[1] - shape.numel(), ()))
        real, imaginary = self._noise[:, first : first + shape.numel()].view(2, *shape)
        return torch.complex(real, imaginary)

    def _phoneme_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        batch, _, frames = logits.shape
        by_third = logits.reshape(batch, PER_FRAME, self.phonemes, frames).permute(0, 3, 1, 2)
        return F.cross_entropy(by_third.flatten(0, 2), labels.flatten(), ignore_index=-100)


WEIGHTS = {"rec": 1.0, "vq": 1.0, "ph": 1.0, "free": 0.5, "code": 0.5, "f0": 2.0, "uv": 0.5,
           "coh": 0.3, "said": 3.0}  # fmt: skip


def weighted(losses: dict[str, Tensor]) -> Tensor:
    """The sum of a step's losses."""
    return torch.stack([WEIGHTS[name] * loss for name, loss in losses.items()]).sum()


@dataclass(frozen=True, slots=True)
class Source:
    """Speech, and what C0 says of it."""

    corpus: Path
    table: CodeTable


@dataclass(frozen=True, slots=True)
class Plan:
    """Minutes of work in all, and a checkpoint to start from where shapes agree."""

    minutes: float
    start: Path | None = None


def semantic(source: Source, folder: Path, config: SpectralConfig, plan: Plan) -> CodecTraining:
    """Train what hears C0 within the plan's minutes, resuming what ``folder`` holds."""
    rng = random.Random()
    model = CodecTraining(build_spectral(config), config.latent, PHONEMES)
    load_matching(model, plan.start)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.8, 0.99), fused=True)
    progress = Progress(folder, plan.minutes, {"model": model, "optimizer": optimizer})
    items: list[Item] = []
    while progress.running:
        items = _refreshed(items, source.corpus, progress)
        first = rng.randrange(len(items) - SEMANTIC_BATCH)
        audio, labels = padded(items[first : first + SEMANTIC_BATCH])
        losses = model.read_phonemes(audio, labels, c0_of(labels, source.table))
        take_step(optimizer, losses, cosine(progress.fraction, progress.step, floor=0.0))
        progress.advance()
        if progress.step % 100 == 0:
            progress.log("semantic", **{n: v.item() for n, v in losses.items()})
    return model


def train(source: Source, folder: Path, config: SpectralConfig, plan: Plan) -> CodecTraining:
    """Train all but C0 within the plan's minutes, resuming what ``folder`` holds; the corpus may
    grow meanwhile. ``plan.start`` is the checkpoint with the final C0."""
    rng = random.Random()
    model = CodecTraining(build_spectral(config), config.latent, PHONEMES)
    load_matching(model, plan.start)
    for parameter in model.semantic_parameters():
        parameter.requires_grad_(False)
    learning = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=PEAK, betas=(0.8, 0.99), fused=True)
    progress = Progress(folder, plan.minutes, {"model": model, "optimizer": optimizer})
    items: list[Item] = []
    while progress.running:
        items = _refreshed(items, source.corpus, progress)
        first = rng.randrange(len(items) - BATCH)
        batch = make_batch(items[first : first + BATCH], rng)
        losses = model(batch, c0_of(batch.labels, source.table), rng.choice(DEPTHS))
        take_step(optimizer, losses, cosine(progress.fraction, progress.step))
        progress.advance()
        if progress.step % 100 == 0:
            progress.log("train", **{n: v.item() for n, v in losses.items()})
    return model


def load_matching(model: nn.Module, checkpoint: Path | None) -> int:
    """Take over a checkpoint's tensors wherever name and shape agree; how many there were."""
    if checkpoint is None:
        return 0
    saved = torch.load(checkpoint, weights_only=True)["model"]
    own = model.state_dict()
    same = {n: t for n, t in saved.items() if n in own and own[n].shape == t.shape}
    model.load_state_dict(same, strict=False)
    print(f"{len(same)} of {len(own)} tensors from {checkpoint.parent.name}", flush=True)
    return len(same)


def _refreshed(items: list[Item], corpus: Path, progress: Progress) -> list[Item]:
    if items and progress.step % 1000:
        return items
    items = usable(corpus)
    print(f"{len(items)} items", flush=True)
    return items


def take_step(optimizer: torch.optim.Optimizer, losses: dict[str, Tensor], scale: float) -> None:
    """One step down the losses at ``scale`` times the highest rate, gradients clipped to norm 1."""
    optimizer.zero_grad()
    weighted(losses).backward()  # type: ignore[no-untyped-call]
    for group in optimizer.param_groups:
        group["lr"] = PEAK * scale
        nn.utils.clip_grad_norm_(group["params"], 1.0)  # the optimizers here have one group
    optimizer.step()
