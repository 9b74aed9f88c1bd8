"""Goes on with the spectral decoder alone, once all codes are final (CB1..CB3 train meanwhile)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

from tontaube.codec.build import SpectralConfig, build_spectral
from tontaube.codec.spectral import SpectralDecoder
from tontaube.train.batches import make_batch, usable
from tontaube.train.codec import BATCH, PEAK, CodecTraining, load_matching, take_step
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
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=PEAK, betas=(0.8, 0.99), fused=True)
    progress = Progress(folder, minutes, {"model": model, "optimizer": optimizer})
    coded = {item.id: torch.from_numpy(item.codes) for item in load(source.codes)}
    items = [item for item in usable(source.corpus) if item.id in coded]
    while progress.running:
        first = rng.randrange(len(items) - BATCH)
        chosen = items[first : first + BATCH]
        batch = make_batch(chosen, rng)
        longest = batch.labels.shape[1]
        codes = torch.stack([F.pad(coded[i.id], (0, longest - i.frames)) for i in chosen])
        losses = model.polish(batch, codes)
        take_step(optimizer, losses, 0.7 * cosine(progress.fraction, progress.step))
        progress.advance()
        if progress.step % 100 == 0:
            progress.log("polish", **{n: v.item() for n, v in losses.items()})
