"""The grammar against vectors of an independent implementation, and its laws on random rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_tokens import released_config
from tontaube.layout import Rows, lay_out, truncate_prompt
from tontaube.tokens import Vocabulary

LINES = (Path(__file__).parent / "data" / "layout.jsonl").read_text("utf-8").splitlines()
VECTORS = [json.loads(line) for line in LINES]
INPUTS = tuple(Rows.__dataclass_fields__)
VOCABULARIES = [Vocabulary(released_config(stage)) for stage in range(4)]


def rows_of(vector: dict) -> Rows:
    return Rows(**{name: vector[name] for name in INPUTS})


def test_the_vectors_cover_every_kind_of_window() -> None:
    assert len(VECTORS) == 60
    assert {vector["stage"] for vector in VECTORS} == {0, 1, 2, 3}
    assert any(vector["c0_open_boundary"] for vector in VECTORS)
    assert any(len(vector["c0"]) > 1 and vector["target"] for vector in VECTORS)


@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_a_vector_is_reproduced(number: int) -> None:
    vector = VECTORS[number]
    result = lay_out(rows_of(vector), VOCABULARIES[vector["stage"]])
    assert result.ids == tuple(vector["ids"])
    assert result.positions == tuple(vector["positions"])
    assert result.next_position == vector["next_position"]


@pytest.mark.parametrize("vector", VECTORS)
def test_arrays_are_laid_out_like_lists(vector: dict) -> None:
    arrays = {
        "prompt": np.array(vector["prompt"], dtype=np.int64),
        "c0": [np.array(chunk, dtype=np.int64) for chunk in vector["c0"]],
        "lower": np.array(vector["lower"], dtype=np.int64),
        "target": np.array(vector["target"], dtype=np.int64),
    }
    vocabulary = VOCABULARIES[vector["stage"]]
    listed, arrayed = rows_of(vector), Rows(**{n: vector[n] for n in INPUTS} | arrays)
    assert lay_out(arrayed, vocabulary) == lay_out(listed, vocabulary)
    assert all(type(token) is int for token in lay_out(arrayed, vocabulary).ids)


def codes(size: int, frames: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, size - 1), min_size=frames, max_size=frames)


@st.composite
def refinements(draw: st.DrawFn, chunks: int | None = None) -> Rows:
    """Rows for an acoustic stage with nothing generated yet."""
    stage = draw(st.integers(1, 3))
    prompt_frames = draw(st.integers(0, 8))
    chunk_count = chunks or draw(st.integers(1, 2))
    text = st.lists(st.integers(0, 300), min_size=1, max_size=40)
    lengths = draw(st.lists(st.integers(1, 60), min_size=chunk_count, max_size=chunk_count))
    total = sum(lengths)
    return Rows(
        stage=stage,
        prompt=[draw(codes(4096, prompt_frames)) for _ in range(stage + 1)],
        control=[1, 2, 3],
        text=[draw(text) for _ in range(chunk_count)],
        c0=[draw(codes(16384, length)) for length in lengths],
        lower=[draw(codes(4096, total)) for _ in range(stage - 1)],
    )


def with_target(rows: Rows, target: list[int]) -> Rows:
    return Rows(
        rows.stage, rows.prompt, rows.control, rows.text, rows.c0, False, rows.lower, target
    )


@given(refinements(), st.data())
def test_a_known_target_only_appends(rows: Rows, data: st.DataObject) -> None:
    """Decoding one code after the other meets the very positions a prefix is laid out at."""
    vocabulary = VOCABULARIES[rows.stage]
    total = sum(map(len, rows.c0))
    target = data.draw(codes(4096, total))
    before = lay_out(rows, vocabulary)
    for known in range(1, total + 1):
        after = lay_out(with_target(rows, target[:known]), vocabulary)
        assert after.ids[:-1] == before.ids
        assert after.positions == (*before.positions, before.next_position)
        before = after


@given(refinements())
def test_frames_of_all_rows_are_simultaneous(rows: Rows) -> None:
    vocabulary = VOCABULARIES[rows.stage]
    total = sum(map(len, rows.c0))
    whole = lay_out(with_target(rows, [0] * total), vocabulary)
    tail = whole.positions[-total:]
    lower_start = len(whole.positions) - total - 1
    for _ in rows.lower:
        assert whole.positions[lower_start - total : lower_start] == tail
        lower_start -= total + 1
    c0 = [
        position
        for token, position in zip(whole.ids, whole.positions, strict=True)
        if vocabulary.starts[0] <= token < vocabulary.starts[1]
    ][len(rows.prompt[0]) :]
    assert tuple(c0) == tail


@given(refinements(chunks=1))
def test_one_chunk_needs_no_salt(rows: Rows) -> None:
    assert lay_out(rows, VOCABULARIES[rows.stage]).cache_salt is None


def salted(c0: list[list[int]], text: list[list[int]]) -> str | None:
    return lay_out(Rows(0, (), [1, 2, 3], text, c0), VOCABULARIES[0]).cache_salt


def test_the_salt_names_where_the_markers_are() -> None:
    text = [[5] * 10, [6] * 10]
    short, longer, other = [[1] * 9, []], [[1] * 60, []], [[2] * 60, []]
    assert salted(short, text) is not None
    assert salted(short, text) != salted(longer, text)
    assert salted(longer, text) == salted(other, text)


@given(st.integers(0, 60), st.integers(1, 60))
def test_equal_ids_before_the_audio_and_equal_salts_mean_equal_positions(a: int, b: int) -> None:
    text = [[5] * 10, [6] * 10]
    one = lay_out(Rows(0, (), [1], text, [[1] * a]), VOCABULARIES[0])
    two = lay_out(Rows(0, (), [1], text, [[1] * b]), VOCABULARIES[0])
    shared = 1 + 10 + 1 + 10 + 1
    assert one.ids[:shared] == two.ids[:shared]
    if one.cache_salt == two.cache_salt:
        assert one.positions[:shared] == two.positions[:shared]


def test_the_prompt_is_cut_to_the_stages_frames() -> None:
    reference = np.arange(4 * 20, dtype=np.int64).reshape(4, 20)
    cut = truncate_prompt(reference, 1, (750, 7, 150, 100))
    assert cut.tolist() == reference[:2, :7].tolist()
    assert truncate_prompt(reference, 3, (1, 1, 1, 100)).shape == (4, 20)


@pytest.mark.parametrize(
    ("fault", "rows"),
    [
        ("vocabulary", Rows(0, (), [1], [[1]])),
        ("streams of equal length", Rows(1, [[1]], [1], [[1]], [[1]])),
        ("streams of equal length", Rows(1, [[1], [1, 2]], [1], [[1]], [[1]])),
        ("no text", Rows(1, (), [1], [], [[1]])),
        ("more audio chunks", Rows(1, (), [1], [[1]], [[1], [2]])),
        ("only CB0 opens", Rows(1, (), [1], [[1], [1]], [[1]], True)),
        ("lower rows", Rows(1, (), [1], [[1]], [[1]], False, [[1]])),
        ("longer than C0", Rows(1, (), [1], [[1]], [[1]], False, (), [1, 2])),
    ],
)
def test_contradicting_rows_are_refused(fault: str, rows: Rows) -> None:
    with pytest.raises(ValueError, match=fault):
        lay_out(rows, VOCABULARIES[1])


def test_cb0_has_no_other_rows() -> None:
    with pytest.raises(ValueError, match="beside C0"):
        lay_out(Rows(0, (), [1], [[1]], [[1]], False, (), [1]), VOCABULARIES[0])
