"""Goes on with the spectral decoder alone, once all codes are final (CB1..CB3 train meanwhile)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from tontaube.codec.build import SpectralConfig, build_spectral
from tontaube.codec.spectral import SpectralDecoder
from tontaube.train.batches import make_batch, usable
from tontaube.train.codec import BATCH, PEAK, CodecTraining, load_matching, weighted
from tontaube.train.codes import load
from tontaube.train.progress import Progress, cosine
from tontaube.train.teacher import PHONEMES


@dataclass(frozen=True, slots=True)
class Polish:
    """What the decoder alone goes on with: audio and its codes."""

    corpus: Path
    codes: Path
    trained: Path  # the folder of the codec's run


def polish(source: Polish, folder: Path, config: SpectralConfig, minutes: float) -> None:
    """Go on with the decoder alone; codes stay as they are."""
    rng = random.Random()
    model = CodecTraining(build_spectral(config), config.latent, PHONEMES)
    load_matching(model, source.trained / "checkpoint.pt")
    decoder = model.codec.dac.decoder
    assert isinstance(decoder, SpectralDecoder)
    parameters = list(decoder.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=PEAK, betas=(0.8, 0.99), fused=True)
    progress = Progress(folder, minutes, {"model": model, "optimizer": optimizer})
    coded = {item.id: torch.from_numpy(item.codes) for item in load(source.codes)}
    items = [item for item in usable(source.corpus) if item.id in coded]
    while progress.running:
        for group in optimizer.param_groups:
            group["lr"] = 0.7 * PEAK * cosine(progress.fraction, progress.step)
        first = rng.randrange(len(items) - BATCH)
        chosen = items[first : first + BATCH]
        batch = make_batch(chosen, rng)
        longest = batch.labels.shape[1]
        codes = torch.stack([F.pad(coded[i.id], (0, longest - i.frames)) for i in chosen])
        losses = model.polish(batch, codes)
        optimizer.zero_grad()
        weighted(losses).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        progress.advance()
        if progress.step % 100 == 0:
            progress.log("polish", **{n: v.item() for n, v in losses.items()})
