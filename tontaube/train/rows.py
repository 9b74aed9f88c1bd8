"""Coded sentences → training sequences in a stage's real layout (report, section 4).

Chunks are made of one or more sentences; CB0 sees them alone, first, in the middle or last in a
window; CB1..CB3 see one chunk, sometimes cut where a sub-chunk of a stream would end.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tontaube.layout import Rows, lay_out, truncate_prompt
from tontaube.tokens import StageConfig, TextTokenizer, Vocabulary
from tontaube.train.codes import CodedItem
from tontaube.types import Codes

LOOKAHEAD = 50  # characters of the next chunk that CB0 may see
PROMPT_FRAMES = (150, 300, 150, 100)  # 12 s for CB0 in training; the others as in serving
IGNORED = -100


@dataclass(frozen=True, slots=True)
class Example:
    """Ids, positions and labels of one sequence; labels count in head order, -100: no loss."""

    ids: Sequence[int]
    positions: Sequence[int]
    labels: Sequence[int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text and codes [4, T] of one or more sentences in a row."""

    text: str
    codes: Codes


class RowMaker:
    """Draws training sequences of one stage."""

    def __init__(
        self, config: StageConfig, tokenizer: TextTokenizer, items: list[CodedItem],
        longest: int, seed: int,
    ) -> None:  # fmt: skip
        self._vocabulary = Vocabulary(config)
        self._stage = config.target_codebook
        self._semantic = config.semantic_vocab_size
        self._tokenizer = tokenizer
        self._by_kind: dict[tuple[str, str, str], list[CodedItem]] = {}
        for item in items:
            key = (item.language, item.style, item.speaker)
            self._by_kind.setdefault(key, []).append(item)
        self._by_speaker: dict[str, list[CodedItem]] = {}
        for item in items:
            self._by_speaker.setdefault(item.speaker, []).append(item)
        self._items = items
        self._longest = longest
        self._rng = random.Random(seed)

    def example(self, item: CodedItem) -> Example:
        """A sequence whose (last) chunk starts with ``item``."""
        control = self._tokenizer.control(item.language, item.style)
        prompt = self._prompt(item) if self._rng.random() < 0.5 else np.zeros((0, 0), np.int64)
        if self._stage == 0:
            return self._semantic_example(item, control, prompt)
        return self._acoustic_example(item, control, prompt)

    def _prompt(self, item: CodedItem) -> Codes:
        """Two to eight seconds of the same speaker, mostly short: sequences stay cheap."""
        wanted = min(int(25 * (1 + self._rng.expovariate(1.0))), 100)
        pool = self._by_speaker[item.speaker]
        parts: list[Codes] = []
        while sum(p.shape[1] for p in parts) < wanted:
            parts.append(self._rng.choice(pool).codes)
        joined = np.concatenate(parts, 1)[:, :wanted]
        return truncate_prompt(joined, self._stage, PROMPT_FRAMES)

    def _chunk(self, item: CodedItem, longest: int) -> Chunk:
        """The sentence, with others of its kind after it until a drawn length is reached."""
        wanted = self._rng.choice((0, 0, self._rng.randint(0, longest)))
        chosen, size = [item], len(item.text)
        pool = self._by_kind[item.language, item.style, item.speaker]
        while size < wanted:
            other = self._rng.choice(pool)
            if size + 1 + len(other.text) > longest:
                break
            chosen.append(other)
            size += 1 + len(other.text)
        return Chunk(" ".join(i.text for i in chosen), np.concatenate([i.codes for i in chosen], 1))

    def _other(self, item: CodedItem) -> CodedItem:
        return self._rng.choice(self._by_kind[item.language, item.style, item.speaker])

    def _semantic_example(self, item: CodedItem, control: tuple[int, ...], prompt: Codes
                          ) -> Example:  # fmt: skip
        kind = self._rng.choices(("alone", "first", "middle", "last"), (50, 15, 15, 20))[0]
        longest = self._longest if kind in ("alone", "first") else self._longest // 2
        chunk = self._chunk(item, longest)
        follows = kind in ("first", "middle")
        ahead = self._other(item).text[:LOOKAHEAD].rpartition(" ")[0] if follows else ""
        before = [self._chunk(self._other(item), longest)] if kind in ("middle", "last") else []
        chunks = [*before, chunk]
        # in the middle of a text the chunk before may itself be a later one: then it has the space
        later = bool(before) and self._rng.random() < 0.5
        texts = [(" " if i or later else "") + c.text for i, c in enumerate(chunks)]
        texts[-1] += "" if follows else "\n"
        texts += [" " + ahead] if ahead else []
        rows = Rows(
            0,
            prompt,
            control,
            [self._tokenizer.characters(text) for text in texts],
            [c.codes[0] for c in chunks],
        )
        laid = lay_out(rows, self._vocabulary)
        end = self._semantic + (1 if follows else 0)
        spoken: list[int] = []
        for i, c in enumerate(chunks):
            spoken += [self._semantic + 1] if i else []
            spoken += c.codes[0].tolist()
        tail = len(spoken) + 1  # with the PAD that opens the row
        labels = [IGNORED] * (len(laid.ids) - tail) + spoken + [end]
        return Example(laid.ids, laid.positions, labels)

    def _acoustic_example(self, item: CodedItem, control: tuple[int, ...], prompt: Codes
                          ) -> Example:  # fmt: skip
        chunk = self._chunk(item, self._longest)
        codes = chunk.codes
        if self._rng.random() < 0.35 and codes.shape[1] > 12:
            codes = codes[:, : self._rng.randint(7, codes.shape[1])]
        text = (" " if self._rng.random() < 0.3 else "") + chunk.text
        text += "\n" if self._rng.random() < 0.7 else ""
        rows = Rows(
            self._stage,
            prompt,
            control,
            [self._tokenizer.characters(text)],
            [codes[0]],
            lower=codes[1 : self._stage],
            target=codes[self._stage],
        )
        laid = lay_out(rows, self._vocabulary)
        target = codes[self._stage].tolist()
        labels = [IGNORED] * (len(laid.ids) - 1 - len(target)) + target
        return Example(laid.ids[:-1], laid.positions[:-1], labels)
