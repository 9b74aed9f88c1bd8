"""Languages and styles → a small tokenizer of Qwen's format for a bundle trained from scratch.

It is used like the released one: characters one by one, labels through its merges. So it needs no
merges but those that give a European character or a label one id of its own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from tontaube.tokens import AUDIO_SPLIT, END_OF_SPEECH, IM_END, IM_START, PAD, TEXT_SPLIT

SPECIAL = (PAD, IM_START, IM_END, END_OF_SPEECH, TEXT_SPLIT, AUDIO_SPLIT)

# How Qwen2 and Qwen3 cut text before their merges apply.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PUNCTUATION = "‐‑‒–—―‘’‚‛“”„‟†‡•…‰′″‹›€™−"


def build_tokenizer(languages: Iterable[str], styles: Iterable[str]) -> Tokenizer:
    """A byte-level BPE in which every byte, every character of ``alphabet`` and every label is one
    token, and the structural tokens come last. The order of the arguments decides the ids."""
    byte_of = _byte_alphabet()
    vocabulary = {symbol: number for number, symbol in enumerate(byte_of.values())}
    ranks: dict[tuple[str, str], int] = {}
    labels = (*languages, " :", *(f" {style}" for style in styles))
    for text in (*alphabet(), *labels):
        # Later merges never disturb a text that earlier ones already make one token.
        symbols = [byte_of[byte] for byte in text.encode("utf-8")]
        while len(symbols := _merge(symbols, ranks)) > 1:
            ranks[symbols[0], symbols[1]] = len(ranks)
            vocabulary.setdefault(symbols[0] + symbols[1], len(vocabulary))

    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=list(ranks)))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    return tokenizer


def stage_ids(tokenizer: Tokenizer) -> dict[str, Any]:
    """The fields of ``StageConfig`` that a tokenizer of ``build_tokenizer`` decides."""
    return {
        "audio_token_start_id": tokenizer.get_vocab_size(),
        "pad_token_id": tokenizer.token_to_id(PAD),
        "eos_token_id": tokenizer.token_to_id(END_OF_SPEECH),
        "audio_marker_token_id": tokenizer.token_to_id(AUDIO_SPLIT),
        "text_marker_token_id": tokenizer.token_to_id(TEXT_SPLIT),
    }


def alphabet() -> str:
    """The characters beyond ASCII with an id of their own: Latin-1, Latin Extended-A and the
    general punctuation of the seven languages."""
    latin = map(chr, range(0xA0, 0x180))
    return "".join(c for c in latin if unicodedata.category(c) != "Cc") + _PUNCTUATION


def _merge(symbols: list[str], ranks: dict[tuple[str, str], int]) -> list[str]:
    """What byte-pair encoding makes of ``symbols``: the pair of lowest rank first, repeatedly."""
    while True:
        pairs = [pair for pair in pairwise(symbols) if pair in ranks]
        if not pairs:
            return symbols
        at = list(pairwise(symbols)).index(min(pairs, key=ranks.__getitem__))
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]


def _byte_alphabet() -> dict[int, str]:
    """The visible character that stands for each byte in a byte-level vocabulary, in the order of
    Qwen's ids: printable Latin-1 stands for itself, the other bytes count up from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {
        byte: chr(0x100 + number) for number, byte in enumerate(others)
    }
