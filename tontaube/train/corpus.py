"""A folder of shards: spoken sentences with labels, written once, read through memory maps."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tontaube.train.phonemes import in_frames
from tontaube.train.teacher import PITCH_RATE, Utterance

SAMPLE_RATE = 24_000
HOP = 1920
HELD_OUT = 200  # one sentence of so many is for measuring


def lot(id_: str) -> int:
    """A number that a sentence has drawn for good."""
    return zlib.crc32(id_.encode())


def is_held_out(id_: str) -> bool:
    """Whether a sentence is never trained on, whatever else the corpus comes to hold."""
    return lot(id_) % HELD_OUT == 0


@dataclass(frozen=True, slots=True)
class Item:
    """One sentence of a corpus; audio and labels are views into the shard."""

    id: str
    text: str
    language: str
    style: str
    speaker: str
    samples: npt.NDArray[np.int16]
    phonemes: npt.NDArray[np.uint8]
    pitch: npt.NDArray[np.float16]

    @property
    def frames(self) -> int:
        """Whole codec frames."""
        return len(self.samples) // HOP

    def triples(self) -> npt.NDArray[np.int64]:
        """What each frame says: phoneme ids int64 [frames, 3]."""
        return in_frames(self.phonemes, self.frames)

    def pitch_at(self, rate: float, count: int) -> npt.NDArray[np.float32]:
        """Pitch in Hz at the centres of ``count`` intervals of 1/rate seconds."""
        centres = (np.arange(count) + 0.5) / rate * PITCH_RATE - 0.5
        curve = self.pitch.astype(np.float32)
        pitch: npt.NDArray[np.float32] = np.interp(centres, np.arange(len(curve)), curve).astype(
            np.float32
        )
        return pitch


class ShardWriter:
    """Collects utterances and writes one shard (``name.json`` + four ``.npy``), atomically last."""

    def __init__(self, folder: Path, name: str) -> None:
        self._base = folder / name
        self._entries: list[dict[str, object]] = []
        self._parts: list[Utterance] = []
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def done(self) -> bool:
        """Whether the shard is on disk already."""
        return self._base.with_suffix(".json").exists()

    def add(self, utterance: Utterance, **entry: str) -> None:
        """Append an utterance with its id, text, language, style and speaker."""
        sizes = [len(utterance.samples), len(utterance.phonemes), len(utterance.pitch)]
        self._entries.append({**entry, "sizes": sizes})
        self._parts.append(utterance)

    def close(self) -> None:
        """Write the arrays, then the index that makes them a shard."""
        for kind in ("samples", "phonemes", "pitch"):
            joined = np.concatenate([getattr(part, kind) for part in self._parts])
            np.save(f"{self._base}.{kind}.npy", joined)
        scratch = self._base.with_suffix(".tmp")
        scratch.write_text(json.dumps(self._entries), "utf-8")
        scratch.rename(self._base.with_suffix(".json"))


def read(folder: Path, shards: Sequence[str] | None = None) -> Iterator[Item]:
    """All items of a corpus, or of the named shards, in order."""
    for index in sorted(folder.glob("*.json")):
        if shards is not None and index.stem not in shards:
            continue
        maps = [
            np.load(index.with_suffix(f".{kind}.npy"), mmap_mode="r")
            for kind in ("samples", "phonemes", "pitch")
        ]
        at = [0, 0, 0]
        for entry in json.loads(index.read_text("utf-8")):
            sizes = entry.pop("sizes")
            views = [m[a : a + n] for m, a, n in zip(maps, at, sizes, strict=True)]
            at = [a + n for a, n in zip(at, sizes, strict=True)]
            yield Item(**entry, samples=views[0], phonemes=views[1], pitch=views[2])
