"""Goes on with the spectral decoder alone, once all codes are final (CB1..CB3 train meanwhile).

When these have trained, once more with their codes: where they err they say what does not go with
C0, and a decoder that never met that takes their word for it against C0's.
"""

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

PREDICTED = 0.7  # of a batch, where there are predicted codes


@dataclass(frozen=True, slots=True)
class Polish:
    """What the decoder alone goes on with: audio and its codes, and those that CB1..CB3 predicted,
    if any."""

    corpus: Path
    codes: Path
    predicted: Path
    trained: Path  # the folder of the codec's run


def polish(source: Polish, folder: Path, config: SpectralConfig, minutes: float) -> None:
    """Go on with the decoder alone; codes stay as they are."""
    rng = random.Random()
    model = CodecTraining(build_spectral(config), config.latent, PHONEMES)
    load_matching(model, source.trained / "checkpoint.pt")
    decoder = model.codec.dac.decoder
    assert isinstance(decoder, SpectralDecoder)
    model.requires_grad_(False)
    decoder.requires_grad_(True)
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=PEAK, betas=(0.8, 0.99), fused=True)
    progress = Progress(folder, minutes, {"model": model, "optimizer": optimizer})
    coded = {item.id: torch.from_numpy(item.codes) for item in load(source.codes)}
    predicted = {item.id: torch.from_numpy(item.codes) for item in load(source.predicted)}
    known = predicted or coded
    items = [item for item in usable(source.corpus) if item.id in known]
    while progress.running:
        first = rng.randrange(len(items) - BATCH)
        chosen = items[first : first + BATCH]
        batch = make_batch(chosen, rng)
        longest = batch.labels.shape[1]
        own = torch.ones(BATCH)
        own[: round(BATCH * PREDICTED) if predicted else 0] = 0
        own = own[torch.randperm(BATCH)]
        rows = [(coded if mine else predicted)[i.id] for i, mine in zip(chosen, own, strict=True)]
        codes = torch.stack([F.pad(row, (0, longest - row.shape[1])) for row in rows])
        losses = model.polish(batch, codes, own)
        take_step(optimizer, losses, 0.7 * cosine(progress.fraction, progress.step))
        progress.advance()
        if progress.step % 100 == 0:
            progress.log("polish", **{n: v.item() for n, v in losses.items()})
