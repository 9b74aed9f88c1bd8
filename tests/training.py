"""A small corpus, a table for it, and shapes of stages, for the tests of training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.test_spectral import TINY
from tontaube.tokens import StageConfig
from tontaube.train import recipe
from tontaube.train.codes import CodedItem, save_shard
from tontaube.train.corpus import Item, ShardWriter
from tontaube.train.table import CodeTable
from tontaube.train.teacher import PHONEMES, Utterance
from tontaube.train.tokenizer import build_tokenizer

TOKENIZER = build_tokenizer(recipe.LANGUAGES, recipe.STYLES)


def config(stage: int) -> StageConfig:
    shape = recipe.Shape(blocks=1, width=32, inner=48, heads=1, kv_heads=1, head=32)
    return recipe.stage_config(stage, shape, TOKENIZER, TINY)


def items(count: int = 12) -> list[CodedItem]:
    generator = np.random.default_rng(0)
    made = []
    for i in range(count):
        frames = 14 + i
        codes = np.stack([generator.integers(0, n, frames) for n in (64, 32, 32, 32)])
        made.append(CodedItem(f"{i}", f"Line {i} is here.", "english", "agentic", "s", codes))
    return made


def spoken(seconds: float, seed: int) -> Utterance:
    generator = np.random.default_rng(seed)
    time = np.arange(int(seconds * 24_000)) / 24_000
    wave = 0.3 * np.sin(2 * np.pi * 150 * time) + generator.normal(0, 0.01, len(time))
    return Utterance(
        (wave * 32767).astype(np.int16),
        generator.integers(0, PHONEMES, int(seconds * 40)).astype(np.uint8),
        np.full(int(seconds * 80), 150, np.float16),
    )


def write_corpus(folder: Path, count: int) -> None:
    writer = ShardWriter(folder, "shard-000")
    assert not writer.done
    for i in range(count):
        labels = {"text": f"Line {i}.", "language": "english", "style": "agentic", "speaker": "s"}
        writer.add(spoken(1.3 + 0.1 * (i % 3), i), id=f"{i:03d}", **labels)
    writer.close()
    assert writer.done


def code_table(spoken_: list[Item]) -> CodeTable:
    return CodeTable.of(((i.language, i.triples()) for i in spoken_), TINY.semantic_codes)


def write_codes(folder: Path, what: list[CodedItem], shard: str = "shard-000.json") -> None:
    folder.mkdir()
    save_shard(folder / shard, what, [c.codes for c in what])
