"""Audio of a corpus → codes, once; what the stages are trained on."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from tontaube.codec.dualcodec import DualCodec
from tontaube.codec.logmel import LogMel
from tontaube.train.corpus import HOP, Item, read
from tontaube.train.phonemes import frames_of, in_frames
from tontaube.train.table import CodeTable
from tontaube.types import STREAMS, Codes

BATCH = 24
LABELS = "labels"  # folder of sentences that were only labelled


@dataclass(frozen=True, slots=True)
class CodedItem:
    """One sentence: text, labels, codes int64 [streams, T]."""

    id: str
    text: str
    language: str
    style: str
    speaker: str
    codes: Codes


def triples(run: Path) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """The language and phonemes [T, 3] of every sentence of a run, spoken or only labelled."""
    for index in _shards(run):
        for item, said in _said(index):
            yield item.language, said


def _shards(run: Path) -> list[Path]:
    return [index for name in ("corpus", LABELS) for index in sorted((run / name).glob("*.json"))]


def _said(index: Path) -> Iterator[tuple[Item | CodedItem, npt.NDArray[np.int64]]]:
    """A shard's sentences with their phonemes [T, 3]."""
    if index.parent.name != LABELS:
        for spoken in read(index.parent, [index.stem]):
            yield spoken, spoken.triples()
        return
    for item in load_shard(index, 1):
        labels = item.codes[0].astype(np.uint8)
        yield item, in_frames(labels, frames_of(labels))


def write_c0(run: Path, table: CodeTable, folder: Path) -> None:
    """Write C0 of a run's sentences, spoken or only labelled, shards that ``folder`` lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in _shards(run):
        if not (folder / index.name).exists():
            items, said = zip(*_said(index), strict=True)
            save_shard(folder / index.name, items, [table.codes(one)[None] for one in said])


@torch.inference_mode()
def extract(corpus: Path, table: CodeTable, codec: DualCodec, folder: Path) -> None:
    """Encode the shards of a corpus that ``folder`` does not have yet: C0 by the table, the rest by
    the codec."""
    codec.eval()
    folder.mkdir(parents=True, exist_ok=True)
    for index in sorted(corpus.glob("*.json")):
        if not (folder / index.name).exists():
            items = list(read(corpus, [index.stem]))
            _extract_shard(items, table, codec, folder / index.name)
            print(f"{index.stem} encoded", flush=True)


def _extract_shard(items: list[Item], table: CodeTable, codec: DualCodec, target: Path) -> None:
    features = LogMel()
    by_length: dict[int, list[Item]] = defaultdict(list)
    for item in items:
        if item.frames >= 3:
            by_length[item.frames].append(item)
    coded, found = [], []
    for length in sorted(by_length):  # equal lengths share a batch: no padding to influence codes
        same = by_length[length]
        for first in range(0, len(same), BATCH):
            batch = same[first : first + BATCH]
            audio = np.stack([i.samples[: length * HOP] for i in batch]).astype(np.float32) / 32768
            mel = features(torch.from_numpy(audio))
            coded += batch
            c0 = torch.from_numpy(np.stack([table.codes(i.triples()) for i in batch]))[:, None]
            found += [codes.numpy() for codes in codec.encode_rest(c0, mel, STREAMS)]
    save_shard(target, coded, found)


def save_shard(index: Path, items: Sequence[Item | CodedItem], codes: Sequence[Codes]) -> None:
    """Write the codes [streams, T] of each item, beside the .json ``index``, which comes last."""
    entries = [
        [item.id, item.text, item.language, item.style, item.speaker, row.shape[1]]
        for item, row in zip(items, codes, strict=True)
    ]
    np.save(index.with_suffix(".npy"), np.concatenate(codes, 1).astype(np.int16))
    index.write_text(json.dumps(entries), "utf-8")


def load_shard(index: Path, streams: int = STREAMS) -> list[CodedItem]:
    """What ``save_shard`` wrote, with the first ``streams`` streams."""
    codes = np.load(index.with_suffix(".npy")).astype(np.int64)
    items, at = [], 0
    for id_, text, language, style, speaker, length in json.loads(index.read_text("utf-8")):
        part = codes[:streams, at : at + length]
        items.append(CodedItem(id_, text, language, style, speaker, part))
        at += length
    return items


def load(folder: Path, streams: int = STREAMS) -> list[CodedItem]:
    """All shards so far, in the corpus' order, with the first ``streams`` streams."""
    shards = (load_shard(index, streams) for index in sorted(folder.glob("*.json")))
    return sorted((item for shard in shards for item in shard), key=lambda item: item.id)
