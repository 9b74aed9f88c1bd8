"""Utterances of a corpus → padded batches for the codec, with one crop of each to decode."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tontaube.codec.logmel import STEP
from tontaube.codec.spectral import STEPS, pulse_train
from tontaube.train.corpus import HOP, SAMPLE_RATE, Item, is_held_out, read
from tontaube.train.phonemes import PER_FRAME
from tontaube.train.table import CodeTable
from tontaube.train.teacher import PITCH_RATE, VOICED_ABOVE

CROP = 12  # frames of each utterance that are decoded


@dataclass(frozen=True, slots=True)
class Batch:
    """Audio [B, T·1920], labels [B, T, 3] (-100: none), and of the crops: target [B, C·1920],
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


def padded(items: list[Item]) -> tuple[Tensor, Tensor]:
    """Audio [B, T·1920] and labels [B, T, 3] of utterances, as long as the longest."""
    longest = max(item.frames for item in items)
    audio = torch.zeros(len(items), longest * HOP)
    labels = torch.full((len(items), longest, PER_FRAME), -100)
    for row, item in enumerate(items):
        samples = item.samples[: item.frames * HOP].astype(np.float32) / 32768
        audio[row, : len(samples)] = torch.from_numpy(samples)
        labels[row, : item.frames] = torch.from_numpy(item.triples())
    return audio, labels


def c0_of(labels: Tensor, table: CodeTable) -> Tensor:
    """Labels [B, T, 3] of a batch → its C0 int64 [B, T]; 0 behind the ends."""
    spoken = labels[..., 0] != -100
    codes = torch.zeros(spoken.shape, dtype=torch.int64)
    codes[spoken] = torch.from_numpy(table.codes(labels[spoken].numpy()))
    return codes


def make_batch(items: list[Item], rng: random.Random) -> Batch:
    """Pad a list of utterances and cut one crop from each."""
    audio, labels = padded(items)
    pulses, pitch, crops = [], [], []
    for item in items:
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


def usable(corpus: Path) -> list[Item]:
    """Items long enough to crop, by length, without those held out."""
    items = [item for item in read(corpus) if not is_held_out(item.id)]
    return sorted((i for i in items if CROP + 2 <= i.frames <= 110), key=lambda i: i.frames)
