"""What a frame says: the teacher's labels at 40 a second → three phonemes a codec frame.

Marks that have no sound of their own (stress, length, short spaces between words) hand their time
to the phoneme that is heard then.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tontaube.train.teacher import PHONEME_RATE

PER_FRAME = 3  # a frame has 3.2 labels
FRAME_RATE = 12.5
SPACE, LENGTH = 16, 158  # in Kokoro's alphabet
STRESS = (156, 157)
PAUSE = 3  # labels from which a space is heard

Labels = npt.NDArray[np.uint8]


def heard(labels: Labels) -> Labels:
    """The labels [n], each of a sound."""
    starts = np.flatnonzero(np.diff(labels.astype(np.int16), prepend=-1))
    values = labels[starts]
    lasts = np.diff(np.append(starts, len(labels)))
    owner = np.arange(len(values))
    silent = np.isin(values, STRESS) | ((values == SPACE) & (lasts < PAUSE))
    owner[silent] = len(values)  # what comes next
    owner = np.minimum.accumulate(owner[::-1])[::-1]
    values = np.append(values, values[-1:])[owner]
    owner = np.arange(len(values))
    owner[values == LENGTH] = 0  # what was before
    values = values[np.maximum.accumulate(owner)]
    return np.repeat(values, lasts)


def in_frames(labels: Labels, frames: int) -> npt.NDArray[np.int64]:
    """Labels [n] → the phonemes of each frame's thirds, int64 [frames, 3]."""
    thirds = (np.arange(frames * PER_FRAME) + 0.5) / PER_FRAME / FRAME_RATE
    index = np.minimum((thirds * PHONEME_RATE).astype(int), len(labels) - 1)
    phonemes: npt.NDArray[np.int64] = heard(labels)[index].astype(np.int64)
    return phonemes.reshape(-1, PER_FRAME)


def frames_of(labels: Labels) -> int:
    """Whole frames of a sentence with these labels."""
    return int(len(labels) * FRAME_RATE // PHONEME_RATE)
