"""Goes on with the spectral decoder alone, once all codes are final (CB1..CB3 train meanwhile):
first towards the smallest distances (``polish``), then against discriminators (``adversarial``)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tontaube.codec.build import SpectralConfig, build_spectral
from tontaube.codec.spectral import SpectralDecoder
from tontaube.train.batches import Batch, make_batch, usable
from tontaube.train.codec import BATCH, PEAK, WEIGHTS, CodecTraining, load_matching, take_step
from tontaube.train.codes import load
from tontaube.train.discriminators import Judges
from tontaube.train.progress import Progress, cosine
from tontaube.train.teacher import PHONEMES

ADVERSARIAL_PEAK = 3e-4  # learning rate of the decoder
TEACHING_PEAK = 1e-3  # and of the discriminators
WARM_UP = 200  # steps until discriminators have their full say
ADVERSARIAL_BATCH = 6  # utterances a step
AVERAGING = 0.998  # decay of the averaged weights, which are what is exported


@dataclass(frozen=True, slots=True)
class Polish:
    """What the decoder alone goes on with: audio, its codes, and what was trained before."""

    corpus: Path
    codes: Path
    trained: Path  # the folder of the run to start from


def polish(source: Polish, folder: Path, config: SpectralConfig, minutes: float) -> None:
    """Go on with the decoder alone; codes stay as they are."""
    model, decoder = _model(source, config)
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=PEAK, betas=(0.8, 0.99), fused=True)
    progress = Progress(folder, minutes, {"model": model, "optimizer": optimizer})
    for batch, codes in _batches(source, BATCH):
        if not progress.running:
            return
        audio, losses = model.polish(batch, codes)
        losses["rec"] = model.reconstruction(audio, batch.target)
        take_step(optimizer, losses, 0.7 * cosine(progress.fraction, progress.step))
        progress.advance()
        if progress.step % 100 == 0:
            progress.log("polish", **{n: v.item() for n, v in losses.items()})


def adversarial(source: Polish, folder: Path, config: SpectralConfig, minutes: float) -> None:
    """Go on with the decoder against discriminators; the checkpoint's ``model`` has the averaged
    decoder, ``decoder`` the one that learns."""
    model, average = _model(source, config)
    decoder = build_spectral(config).dac.decoder
    assert isinstance(decoder, SpectralDecoder)
    decoder.load_state_dict(average.state_dict())
    judges = Judges()
    rates = (ADVERSARIAL_PEAK, TEACHING_PEAK)
    optimizer, teaching = (
        torch.optim.AdamW(part.parameters(), lr=rate, betas=(0.8, 0.99), fused=True)
        for part, rate in zip((decoder, judges), rates, strict=True)
    )
    state = {"model": model, "decoder": decoder, "optimizer": optimizer}
    progress = Progress(folder, minutes, state | {"judges": judges, "teaching": teaching})
    for batch, codes in _batches(source, ADVERSARIAL_BATCH):
        if not progress.running:
            return
        scale = cosine(progress.fraction, progress.step, floor=0.1)
        for opt, rate in zip((optimizer, teaching), rates, strict=True):
            opt.param_groups[0]["lr"] = rate * scale
        model.codec.dac.decoder = decoder
        audio, losses = model.polish(batch, codes)
        model.codec.dac.decoder = average
        share = min(1.0, progress.step / WARM_UP)
        judgement = judges.judge(audio, batch.target, model.reconstruction, teaching, share)
        others = torch.stack([WEIGHTS[name] * loss for name, loss in losses.items()]).sum()
        optimizer.zero_grad()
        torch.autograd.backward((others, audio), (None, judgement.gradient))
        nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        optimizer.step()
        _follow(average, decoder, min(AVERAGING, 1 - 1 / (progress.step + 1)))
        progress.advance()
        if progress.step % 50 == 0:
            figures = {name: loss.item() for name, loss in losses.items()}
            progress.log("adversarial", **judgement.figures, **figures)


def _model(source: Polish, config: SpectralConfig) -> tuple[CodecTraining, SpectralDecoder]:
    model = CodecTraining(build_spectral(config), config.latent, PHONEMES)
    load_matching(model, source.trained / "checkpoint.pt")
    decoder = model.codec.dac.decoder
    assert isinstance(decoder, SpectralDecoder)
    return model, decoder


def _batches(source: Polish, size: int) -> Iterator[tuple[Batch, Tensor]]:
    """Batches with their codes [B, 4, T], without an end."""
    rng = random.Random()
    coded = {item.id: torch.from_numpy(item.codes) for item in load(source.codes)}
    items = [item for item in usable(source.corpus) if item.id in coded]
    while True:
        first = rng.randrange(len(items) - size)
        chosen = items[first : first + size]
        batch = make_batch(chosen, rng)
        longest = batch.labels.shape[1]
        yield batch, torch.stack([F.pad(coded[i.id], (0, longest - i.frames)) for i in chosen])


@torch.no_grad()
def _follow(average: nn.Module, network: nn.Module, decay: float) -> None:
    for mean, now in zip(average.parameters(), network.parameters(), strict=True):
        mean.lerp_(now, 1 - decay)
