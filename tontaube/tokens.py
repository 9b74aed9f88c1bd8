"""Characters, control labels and codes ↔ vocabulary ids of one stage (report, section 3.3).

Every id is read from the stage's ``config.json`` and checked against the tokenizer; this module
knows no layout and no positions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from tokenizers import Tokenizer

from tontaube.errors import BundleError
from tontaube.types import STREAMS

Row = Sequence[int] | npt.NDArray[np.int64]  # codes of one stream, [frames]

PAD = "<|endoftext|>"
IM_START = "<|im_start|>"
IM_END = "<|im_end|>"
END_OF_SPEECH = "<|end_of_speech|>"
TEXT_SPLIT = "<|text_split|>"
AUDIO_SPLIT = "<|audio_split|>"


class StageConfig(BaseModel):
    """A stage's ``config.json``: Qwen3's sizes and the layout of its vocabulary.

    ``rope_theta`` may also stand inside ``rope_parameters``; fields not listed here are ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    hidden_size: int = Field(ge=1)
    num_hidden_layers: int = Field(ge=1)
    num_attention_heads: int = Field(ge=1)
    num_key_value_heads: int = Field(ge=1)
    head_dim: int = Field(ge=2)
    intermediate_size: int = Field(ge=1)
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1_000_000.0
    vocab_size: int
    max_position_embeddings: int = 40_960
    audio_token_start_id: int
    n_codebooks: int = Field(default=STREAMS, ge=1, le=STREAMS)
    target_codebook: int = Field(ge=0)
    audio_head_hidden: int = Field(default=4096, ge=1)
    pad_token_id: int
    eos_token_id: int  # <|end_of_speech|>
    audio_marker_token_id: int  # <|audio_split|>
    text_marker_token_id: int  # <|text_split|>
    chunk_realign_offset: int = Field(
        default=25, ge=0
    )  # δ of the report's equation 4, in characters
    semantic_vocab_size: int = Field(default=16_384, ge=1)
    acoustic_vocab_size: int = Field(default=4_096, ge=1)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read ``folder/config.json``. Raises BundleError naming the file and what is wrong."""
        path = folder / "config.json"
        try:
            return cls.model_validate(json.loads(path.read_text("utf-8")))
        except FileNotFoundError:
            raise BundleError(f"{path}: not found") from None
        except (ValidationError, ValueError) as error:
            raise BundleError(f"{path}: {error}") from error

    @model_validator(mode="before")
    @classmethod
    def _lift_rope_theta(cls, values: Any) -> Any:
        if isinstance(values, dict) and "rope_theta" not in values:
            theta = (values.get("rope_parameters") or {}).get("rope_theta")
            if theta is not None:
                return {**values, "rope_theta": theta}
        return values

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.target_codebook >= self.n_codebooks:
            raise ValueError("target_codebook must be smaller than n_codebooks")
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError("num_attention_heads must be a multiple of num_key_value_heads")
        structural = (
            self.pad_token_id,
            self.eos_token_id,
            self.audio_marker_token_id,
            self.text_marker_token_id,
        )
        if len(set(structural)) < len(structural):
            raise ValueError("the structural token ids must differ from each other")
        if not all(0 <= token < self.audio_token_start_id for token in structural):
            raise ValueError("the structural token ids must lie below audio_token_start_id")
        codes = self.semantic_vocab_size + self.target_codebook * self.acoustic_vocab_size
        if self.vocab_size < self.audio_token_start_id + codes:
            raise ValueError("vocab_size is too small for the codes of streams 0..target_codebook")
        return self

    @property
    def head_size(self) -> int:
        """Rows of the audio head: CB0 has two more than its codebook."""
        return (
            self.semantic_vocab_size + 2 if self.target_codebook == 0 else self.acoustic_vocab_size
        )


class Vocabulary:
    """The ids of one stage: its structural tokens and the codes of streams 0..target."""

    def __init__(self, config: StageConfig) -> None:
        self.stage = config.target_codebook
        self.pad = config.pad_token_id
        self.end_of_speech = config.eos_token_id
        self.audio_split = config.audio_marker_token_id
        self.text_split = config.text_marker_token_id
        self.realign_offset = config.chunk_realign_offset
        streams = config.target_codebook + 1
        self.sizes = (
            config.semantic_vocab_size,
            *(config.acoustic_vocab_size for _ in range(1, streams)),
        )
        first = config.audio_token_start_id
        self.starts = tuple(first + sum(self.sizes[:stream]) for stream in range(streams))

    def code_id(self, stream: int, code: int) -> int:
        """The id of one code. Raises ValueError for a code or stream this stage does not know."""
        return self.code_ids(stream, (code,))[0]

    def code_ids(self, stream: int, codes: Row) -> tuple[int, ...]:
        """The ids of ``codes`` int[frames] of one stream. Raises ValueError like ``code_id``."""
        if not 0 <= stream < len(self.starts):
            raise ValueError(f"stage {self.stage} has no ids for stream {stream}")
        row = np.asarray(codes, dtype=np.int64)
        if row.size and not (0 <= row.min() and row.max() < self.sizes[stream]):
            raise ValueError(f"stream {stream} has codes 0..{self.sizes[stream] - 1} only")
        return tuple((row + self.starts[stream]).tolist())

    def code(self, token: int) -> tuple[int, int]:
        """The stream and code of a codec id, the inverse of ``code_id``."""
        for stream, (start, size) in enumerate(zip(self.starts, self.sizes, strict=True)):
            if start <= token < start + size:
                return stream, token - start
        raise ValueError(f"{token} is no codec id of stage {self.stage}")

    def head_ids(self) -> tuple[int, ...]:
        """The id of every row of this stage's head: its codes, for CB0 then its two stop tokens."""
        start, size = self.starts[self.stage], self.sizes[self.stage]
        stops = (self.end_of_speech, self.audio_split) if self.stage == 0 else ()
        return (*range(start, start + size), *stops)


class TextTokenizer:
    """A Qwen-format tokenizer, used one character at a time; only control labels use its merges."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._first_ids: dict[str, int] = {}
        self.im_start = self._special(IM_START)
        self.im_end = self._special(IM_END)
        self.newline = self.characters("\n")

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read ``folder/tokenizer.json``. Raises BundleError if it is missing or unusable."""
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise BundleError(f"{path}: not found")
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for every malformed file
            raise BundleError(f"{path}: not a tokenizer: {error}") from error
        return cls(tokenizer)

    def characters(self, text: str) -> tuple[int, ...]:
        """One id a character: the character encoded alone, its first id kept (section 3.3)."""
        known = self._first_ids
        for character in set(text) - known.keys():
            half = "\ud800" <= character <= "\udfff"  # of a surrogate pair: JSON allows it
            ids = [] if half else self._tokenizer.encode(character, add_special_tokens=False).ids
            if not ids:
                raise BundleError(f"the tokenizer has no id for the character {character!r}")
            known[character] = ids[0]
        return tuple([known[character] for character in text])

    def control(self, language: str, style: str) -> tuple[int, ...]:
        """The control block's ids: ``<|im_start|>language : style<|im_end|>`` and a newline."""
        label = self._tokenizer.encode(f"{language} : {style}", add_special_tokens=False).ids
        return (self.im_start, *label, self.im_end, *self.newline)

    def check(self, config: StageConfig) -> None:
        """Raise BundleError, naming the token, unless ``config`` and the tokenizer agree on it."""
        for token, expected in (
            (PAD, config.pad_token_id),
            (END_OF_SPEECH, config.eos_token_id),
            (TEXT_SPLIT, config.text_marker_token_id),
            (AUDIO_SPLIT, config.audio_marker_token_id),
        ):
            found = self._special(token)
            if found != expected:
                raise BundleError(f"{token} is {found} in the tokenizer, {expected} in the stage")
        if max(self.im_start, self.im_end) >= config.audio_token_start_id:
            raise BundleError(f"{IM_START} and {IM_END} overlap the stage's codec ids")

    def _special(self, token: str) -> int:
        found: int | None = self._tokenizer.token_to_id(token)
        if found is None:
            raise BundleError(f"the tokenizer has no token {token}")
        return found
