"""A stage of an earlier run → weights to start from when codes mean something else now.

What a stage knows of text and time stays; a new code's rows become the mean of those old codes that
stood on the same frames, weighted by how often they did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tontaube.tokens import StageConfig
from tontaube.train.codes import CodedItem, load


@dataclass(frozen=True, slots=True)
class Earlier:
    """The folder of a stage's run and the codes it was trained on."""

    folder: Path
    codes: Path


def recoded(earlier: Earlier, config: StageConfig, codes: Path) -> dict[str, Tensor]:
    """Averaged weights of the earlier stage with its code tables rewritten for ``config``."""
    saved = torch.load(earlier.folder / "checkpoint.pt", weights_only=True)["average"]
    streams = config.target_codebook + 1
    pairs = list(same_frames(load(earlier.codes, streams), load(codes, streams)))
    first = config.audio_token_start_id
    table, rows, at = saved["model.embed_tokens.weight"], [], first
    rows.append(table[:first])
    for stream in range(streams):
        size = config.acoustic_vocab_size if stream else config.semantic_vocab_size
        # what is left of the old table for C0, since acoustic streams keep their size
        rest = config.acoustic_vocab_size * (streams - 1)
        old = config.acoustic_vocab_size if stream else len(table) - first - rest
        shares = counted([(o[stream], n[stream]) for o, n in pairs], old, size)
        rows.append(_given(shares) @ table[at : at + old])
        at += old
    saved["model.embed_tokens.weight"] = torch.cat(rows)
    weight, bias = saved["audio_head.fc2.weight"], saved["audio_head.fc2.bias"]
    given = _given(shares)  # of the last stream, which is the stage's own
    split = shares / shares.sum(0, keepdim=True).clamp(min=1e-6)  # P(new | old)
    saved["audio_head.fc2.weight"] = torch.cat((given @ weight[:old], weight[old:]))
    # an old code that several new ones share hands each its part of the probability
    mine = given @ bias[:old] + (given * split).sum(1).clamp(min=1e-4).log()
    saved["audio_head.fc2.bias"] = torch.cat((mine, bias[old:]))
    return dict(saved)


def same_frames(
    old: list[CodedItem], new: list[CodedItem]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Codes [streams, T] of the sentences that both have, as spoken by the same audio."""
    by_id = {item.id: item for item in old}
    for item in new:
        before = by_id.get(item.id)
        if before and before.text == item.text and before.codes.shape == item.codes.shape:
            yield before.codes, item.codes


def counted(pairs: list[tuple[np.ndarray, np.ndarray]], old: int, new: int) -> Tensor:
    """How often each new code met each old one: float32 [new, old]."""
    before, after = (np.concatenate(rows) for rows in zip(*pairs, strict=True))
    counts = np.bincount(after * old + before, minlength=new * old)
    return torch.from_numpy(counts.reshape(new, old)).float()


def _given(counts: Tensor) -> Tensor:
    """P(old | new) [new, old]; a new code that was never met gets the old codes' frequencies."""
    prior = counts.sum(0, keepdim=True) / counts.sum()
    smoothed = counts + 0.1 * prior
    return smoothed / smoothed.sum(1, keepdim=True)
