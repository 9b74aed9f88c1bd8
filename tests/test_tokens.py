"""Ids of characters, labels, codes and structural tokens."""

from __future__ import annotations

import json
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tontaube.errors import BundleError
from tontaube.tokens import StageConfig, TextTokenizer, Vocabulary
from tontaube.train.tokenizer import SPECIAL, alphabet, build_tokenizer

QWEN = json.loads((Path(__file__).parent / "data" / "qwen_ids.json").read_text("utf-8"))
STRUCTURAL = {
    "<|endoftext|>": 151_643,
    "<|im_start|>": 151_644,
    "<|im_end|>": 151_645,
    "<|end_of_speech|>": 151_662,
    "<|text_split|>": 151_663,
    "<|audio_split|>": 151_664,
}
FIELDS = {
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3072,
    "vocab_size": 151_665 + 16_384 + 3 * 4_096 + 8,
    "audio_token_start_id": 151_665,
    "pad_token_id": 151_643,
    "eos_token_id": 151_662,
    "audio_marker_token_id": 151_664,
    "text_marker_token_id": 151_663,
    "target_codebook": 0,
}
LANGUAGES = ("english", "german", "spanish", "french", "italian", "dutch", "portuguese")
STYLES = ("audiobook", "conversational", "agentic")


def released_config(stage: int) -> StageConfig:
    """The vocabulary of the released stage CB{stage}."""
    vocab = 151_665 + 16_384 + stage * 4_096 + 8
    return StageConfig(**FIELDS | {"target_codebook": stage, "vocab_size": vocab})


# A tokenizer of Qwen's format with the released ids ----------------------------------------------

PIECES = {  # how the ids of the labels divide their letters
    "english": ["english"],
    "german": ["ger", "man"],
    "spanish": ["sp", "anish"],
    "french": ["f", "rench"],
    "italian": ["ital", "ian"],
    "dutch": ["d", "utch"],
    "portuguese": ["port", "ug", "uese"],
    "audiobook": [" audi", "obook"],
    "conversational": [" convers", "ational"],
    "agentic": [" ag", "entic"],
}
SEVERAL = {"😀": 3, "ш": 1}  # characters that give several ids, the first this many bytes long


PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
SYMBOLS = {byte: chr(byte) for byte in PRINTABLE} | {  # of a byte-level vocabulary, in Qwen's order
    byte: chr(0x100 + number) for number, byte in enumerate(OTHERS)
}


def visible(text: str | bytes) -> str:
    return "".join(SYMBOLS[byte] for byte in (text.encode() if isinstance(text, str) else text))


def qwen_pieces() -> dict[str, int]:
    """Every piece that the vectors name, and its id."""
    pieces: dict[str, int] = {}
    for character, number in QWEN["characters"].items():
        length = SEVERAL.get(character, len(character.encode()))
        pieces[visible(character.encode()[:length])] = number
    for label, ids in QWEN["control_labels"].items():
        language, style = label.split(" : ")
        names = [*PIECES[language], " :", *PIECES[style]]
        pieces |= {visible(name): number for name, number in zip(names, ids, strict=True)}
    return pieces


def qwen_tokenizer() -> dict:
    """A ``tokenizer.json`` with the vectors' pieces at their ids; the real vocabulary is not here.

    Each piece is merged from left to right; pieces of merges lie at ids nobody names.
    """
    pieces = qwen_pieces()
    vocab = {symbol: number for number, symbol in enumerate(SYMBOLS.values())} | pieces
    free = iter(range(100_000, 140_000))
    merges: list[list[str]] = []
    for piece in sorted(pieces, key=len):
        symbols = list(piece)
        while len(symbols) > 1:
            known = [m for m in merges if tuple(m) in set(pairwise(symbols))]
            pair = known[0] if known else symbols[:2]
            if not known:
                merges.append(pair)
                vocab.setdefault("".join(pair), next(free))
            at = list(pairwise(symbols)).index(tuple(pair))
            symbols[at : at + 2] = ["".join(pair)]
    added = [
        {"id": number, "content": token, "special": True}
        | dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
        for token, number in STRUCTURAL.items()
    ]
    words = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    byte_level = {"add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": {"Regex": words},
                    "behavior": "Isolated",
                    "invert": False,
                },
                {"type": "ByteLevel"} | byte_level,
            ],
        },
        "post_processor": {"type": "ByteLevel"} | byte_level,
        "decoder": {"type": "ByteLevel"} | byte_level,
        "model": {"type": "BPE", "vocab": vocab | STRUCTURAL, "merges": merges},
    }


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    folder = tmp_path_factory.mktemp("qwen")
    (folder / "tokenizer.json").write_text(json.dumps(qwen_tokenizer()), "utf-8")
    return TextTokenizer.open(folder)


def test_characters_of_the_released_vocabulary(qwen: TextTokenizer) -> None:
    for character, number in QWEN["characters"].items():
        assert qwen.characters(character) == (number,), character
    together = "".join(QWEN["characters"])
    assert qwen.characters(together) == tuple(QWEN["characters"].values())


@pytest.mark.parametrize("character", SEVERAL)
def test_a_character_of_several_ids_keeps_the_first(qwen: TextTokenizer, character: str) -> None:
    raw = Tokenizer.from_str(json.dumps(qwen_tokenizer()))
    assert len(raw.encode(character).ids) > 1
    assert qwen.characters(f"a{character}a") == (64, QWEN["characters"][character], 64)


@pytest.mark.parametrize("label", QWEN["control_labels"])
def test_control_blocks_of_the_released_vocabulary(qwen: TextTokenizer, label: str) -> None:
    language, style = label.split(" : ")
    expected = (151_644, *QWEN["control_labels"][label], 151_645, 198)
    assert qwen.control(language, style) == expected


def test_no_merge_crosses_characters(qwen: TextTokenizer) -> None:
    assert qwen.characters("english : audiobook") != qwen.control("english", "audiobook")[1:-2]
    assert len(qwen.characters("english")) == len("english")
    marker = "<|im_end|>"  # spoken text cannot forge structure
    assert qwen.characters(marker) == tuple(qwen.characters(c)[0] for c in marker)


def test_the_released_ids_agree_with_the_tokenizer(qwen: TextTokenizer) -> None:
    for stage in range(4):
        qwen.check(released_config(stage))


@pytest.mark.parametrize(
    ("field", "token"),
    [
        ("pad_token_id", "<|endoftext|>"),
        ("eos_token_id", "<|end_of_speech|>"),
        ("audio_marker_token_id", "<|audio_split|>"),
        ("text_marker_token_id", "<|text_split|>"),
    ],
)
def test_a_disagreement_is_named(qwen: TextTokenizer, field: str, token: str) -> None:
    with pytest.raises(BundleError) as raised:
        qwen.check(StageConfig(**FIELDS | {field: 151_650}))
    assert token in str(raised.value) and "151650" in str(raised.value)


@pytest.mark.parametrize("missing", STRUCTURAL)
def test_a_missing_token_is_named(missing: str) -> None:
    content = qwen_tokenizer()
    del content["model"]["vocab"][missing]
    content["added_tokens"] = [t for t in content["added_tokens"] if t["content"] != missing]
    with pytest.raises(BundleError) as raised:
        TextTokenizer(Tokenizer.from_str(json.dumps(content))).check(released_config(0))
    assert missing in str(raised.value)


def test_a_missing_or_damaged_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="not found"):
        TextTokenizer.open(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BundleError, match="not a tokenizer"):
        TextTokenizer.open(tmp_path)


# The small tokenizer -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_tokenizer() -> Tokenizer:
    return build_tokenizer(LANGUAGES, STYLES)


@pytest.fixture(scope="module")
def small(small_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    folder = tmp_path_factory.mktemp("small")
    small_tokenizer.save(str(folder / "tokenizer.json"))
    return TextTokenizer.open(folder)


def test_every_character_has_an_id_of_its_own(small: TextTokenizer) -> None:
    ascii_ = "".join(map(chr, range(128)))
    european = "àâäáãåæçèéêëìíîïñòóôöõøœßùúûüÿłšžőű¿¡«»„“”‚‘’–—…€£§°ºª\u00a0"
    assert set(european) <= set(alphabet())
    everything = ascii_ + alphabet()
    assert len(set(small.characters(everything))) == len(everything)


def test_the_small_tokenizer_counts_ascii_like_qwen(small: TextTokenizer) -> None:
    for character, number in QWEN["characters"].items():
        if character.isascii():
            assert small.characters(character) == (number,)


def test_every_label_is_three_tokens(small_tokenizer: Tokenizer) -> None:
    found = set()
    for language in LANGUAGES:
        for style in STYLES:
            encoding = small_tokenizer.encode(f"{language} : {style}")
            assert small_tokenizer.decode(encoding.ids) == f"{language} : {style}"
            assert len(encoding.ids) == 3
            found |= set(encoding.ids)
    assert len(found) == len(LANGUAGES) + 1 + len(STYLES)


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=8), unique=True, max_size=12))
def test_any_labels_become_one_token_each(languages: list[str]) -> None:
    tokenizer = build_tokenizer(languages, ["calm"])
    for language in languages:
        assert len(tokenizer.encode(f"{language} : calm").ids) == 3


@given(text=st.text())
def test_the_small_tokenizer_loses_nothing(small_tokenizer: Tokenizer, text: str) -> None:
    ids = small_tokenizer.encode(text).ids
    decoded = small_tokenizer.decode(ids, skip_special_tokens=False)
    assert decoded == unicodedata.normalize("NFC", text)


def test_special_tokens_are_the_last_ids(small_tokenizer: Tokenizer) -> None:
    size = small_tokenizer.get_vocab_size()
    ids = [small_tokenizer.token_to_id(token) for token in SPECIAL]
    assert ids == list(range(size - len(SPECIAL), size))
    assert set(SPECIAL) == set(STRUCTURAL)


# Codes and configurations ------------------------------------------------------------------------


def test_released_codec_ids() -> None:
    vocabulary = Vocabulary(released_config(3))
    for stream in range(4):
        first = 151_665 + (16_384 + (stream - 1) * 4_096 if stream else 0)
        assert vocabulary.code_id(stream, 7) == first + 7


@pytest.mark.parametrize("stage", range(4))
def test_head_rows(stage: int) -> None:
    config = released_config(stage)
    ids = Vocabulary(config).head_ids()
    assert len(ids) == config.head_size == len(set(ids))
    if stage == 0:
        assert ids[-2:] == (151_662, 151_664)
        assert ids[:-2] == tuple(range(151_665, 151_665 + 16_384))
    else:
        assert ids[-1] == config.vocab_size - 8 - 1


@given(st.integers(0, 3), st.data())
def test_codes_and_ids_are_inverse(stage: int, data: st.DataObject) -> None:
    config = StageConfig(
        **FIELDS | {"target_codebook": stage, "semantic_vocab_size": 64, "acoustic_vocab_size": 16}
    )
    vocabulary = Vocabulary(config)
    stream = data.draw(st.integers(0, stage))
    codes = data.draw(st.lists(st.integers(0, 15 if stream else 63)))
    ids = vocabulary.code_ids(stream, codes)
    assert [vocabulary.code(token) for token in ids] == [(stream, code) for code in codes]
    assert ids == vocabulary.code_ids(stream, np.array(codes, dtype=np.int64))


@pytest.mark.parametrize(("stream", "code"), [(0, -1), (0, 16_384), (1, 4_096), (2, 0), (-1, 0)])
def test_unknown_codes_are_refused(stream: int, code: int) -> None:
    with pytest.raises(ValueError, match="stream"):
        Vocabulary(released_config(1)).code_id(stream, code)


@pytest.mark.parametrize("token", [0, 151_664, 151_665 + 16_384])
def test_other_ids_are_no_codes(token: int) -> None:
    with pytest.raises(ValueError, match="codec id"):
        Vocabulary(released_config(0)).code(token)


def write(folder: Path, content: dict) -> Path:
    (folder / "config.json").write_text(json.dumps(content), "utf-8")
    return folder


def test_a_config_ignores_what_it_does_not_need(tmp_path: Path) -> None:
    config = StageConfig.read(write(tmp_path, FIELDS | {"model_type": "qwen3", "use_cache": True}))
    assert config == StageConfig(**FIELDS)
    assert StageConfig.read(write(tmp_path, config.model_dump())) == config


def test_rope_theta_of_either_format(tmp_path: Path) -> None:
    flat = StageConfig.read(write(tmp_path, FIELDS | {"rope_theta": 5e5}))
    nested = {"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}
    assert flat == StageConfig.read(write(tmp_path, FIELDS | nested))
    assert flat.rope_theta == 5e5


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"hidden_size": 0}, "hidden_size"),
        ({"vocab_size": 160_000}, "vocab_size"),
        ({"target_codebook": 4}, "target_codebook"),
        ({"num_key_value_heads": 3}, "num_attention_heads"),
        ({"pad_token_id": 151_664}, "differ"),
        ({"eos_token_id": 151_665}, "audio_token_start_id"),
        ({"pad_token_id": None}, "pad_token_id"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, change: dict, named: str) -> None:
    with pytest.raises(BundleError, match=named) as raised:
        StageConfig.read(write(tmp_path, FIELDS | change))
    assert "config.json" in str(raised.value)


@pytest.mark.parametrize("content", ["", "[]", "{}", "\x00"])
def test_a_damaged_config(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(BundleError, match=r"config\.json"):
        StageConfig.read(tmp_path)


def test_a_missing_config(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="not found"):
        StageConfig.read(tmp_path)
