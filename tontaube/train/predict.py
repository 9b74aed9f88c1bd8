"""What CB1..CB3 say of the corpus' own C0: codes that a decoder must sound well after, too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tontaube.backend.network import StageNetwork
from tontaube.backend.torch import Capacity, TorchStage
from tontaube.layout import Rows, lay_out
from tontaube.tokens import TextTokenizer, Vocabulary
from tontaube.train.codes import CodedItem, load_shard, save_shard
from tontaube.types import Codes, StageJob

TOGETHER = 16  # sequences that a stage steps at once
TOKENS = 1600  # the longest sequence


class Predictor:
    """C0 of sentences → C0..C3, greedily, as the stages are asked while speaking."""

    def __init__(self, networks: Sequence[StageNetwork], tokenizer: TextTokenizer) -> None:
        """``networks``: CB1..CB3."""
        capacity = Capacity(sequences=TOGETHER, tokens=TOKENS, prefix_tokens=0)
        self._stages = [TorchStage(network, capacity) for network in networks]
        self._vocabularies = [Vocabulary(network.config) for network in networks]
        self._tokenizer = tokenizer

    def predict(self, items: Sequence[CodedItem]) -> list[Codes]:
        """The codes [4, T] of each item, the first row its own."""
        rows = [[item.codes[0].tolist()] for item in items]
        for vocabulary, stage in zip(self._vocabularies, self._stages, strict=True):
            pairs = enumerate(zip(items, rows, strict=True))
            jobs = (self._job(str(n), *pair, vocabulary) for n, pair in pairs)
            for name, codes in _run(stage, jobs).items():
                rows[int(name)].append(codes)
        return [np.array(row) for row in rows]

    def _job(
        self, name: str, item: CodedItem, rows: list[list[int]], vocabulary: Vocabulary
    ) -> StageJob:
        written = Rows(
            vocabulary.stage,
            prompt=(),
            control=self._tokenizer.control(item.language, item.style),
            text=[self._tokenizer.characters(item.text + "\n")],
            c0=[rows[0]],
            lower=rows[1:],
        )
        return StageJob(name, lay_out(written, vocabulary), max_codes=len(rows[0]))


def _run(stage: TorchStage, jobs: Iterable[StageJob]) -> dict[str, list[int]]:
    codes: dict[str, list[int]] = defaultdict(list)
    for job in jobs:
        stage.add(job)
    while stage.running:
        for output in stage.step():
            codes[output.job_id] += output.codes
    return codes


def predict(codes: Path, folder: Path, predictor: Predictor, shards: int) -> None:
    """Write what ``predictor`` makes of the first ``shards`` shards of ``codes``, those that
    ``folder`` does not have yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in sorted(codes.glob("*.json"))[:shards]:
        if not (folder / index.name).exists():
            items = load_shard(index)
            save_shard(folder / index.name, items, predictor.predict(items))
            print(f"{index.stem} predicted", flush=True)
