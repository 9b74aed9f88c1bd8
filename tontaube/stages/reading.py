"""What stays the same through one request: the model's grammar, the voice, how codes are drawn."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from tontaube.bundle import Description
from tontaube.layout import truncate_prompt
from tontaube.tokens import TextTokenizer, Vocabulary
from tontaube.types import Codes, Continuation, Sampling, Segment, Voice


@dataclass(frozen=True, slots=True)
class Grammar:
    """How this model's prompts are written."""

    description: Description
    tokenizer: TextTokenizer
    vocabularies: tuple[Vocabulary, ...]  # of CB0..CB3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A voice reading in a language and style. ``semantic`` and ``acoustic`` carry the request's
    seed; every job draws from a seed derived from it."""

    grammar: Grammar
    voice: Voice
    control: tuple[int, ...]  # ids of the control block
    semantic: Sampling
    acoustic: Sampling
    tries: int
    continues: Continuation | None = None

    @property
    def before(self) -> Segment | None:
        """What was said before this request, as a segment: the one with index 0 (so that the
        request's own begin with 1)."""
        return Segment(0, self.continues.text, 0, 0, last=False) if self.continues else None

    def prompt(self, stage: int) -> Codes:
        """The reference codes [stage + 1, P] that CB{stage} reads; P may be 0."""
        return truncate_prompt(self.voice.codes, stage, self.grammar.description.prompt_frames)

    def sampling(self, stage: int, *path: int) -> Sampling:
        """How CB{stage} draws in the job ``path`` (segment, try or first frame)."""
        base = self.acoustic if stage else self.semantic
        return replace(base, seed=derive_seed(base.seed, stage, *path))


def derive_seed(seed: int, *path: int) -> int:
    """A seed of 63 bits for one job; the same whatever else runs, different for every path."""
    digest = hashlib.blake2b(repr((seed, *path)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
