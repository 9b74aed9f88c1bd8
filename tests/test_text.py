"""Sanitizing, splitting with ranges, boundary cues, and cutting text that still arrives."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tontaube.bundle import Segmentation
from tontaube.text.segments import ENDS, Segmenter, boundary_text, lookahead, sanitize, split
from tontaube.text.traced import Traced

RELEASED = Segmentation()
SMALL = Segmentation(max_characters=16, lookahead=5)
WEIRD = " \t\n\r\v\f\x1c\x85\u00a0\u2028\u2029\u200b\u0301\ud800\udfff😀👩‍👧日ßéA1.,;:!?\"'()-—"
texts = st.one_of(
    st.text(),
    st.text(st.sampled_from(WEIRD), max_size=80),
    st.text(st.sampled_from("ab .,\n"), max_size=200),
    st.lists(st.sampled_from(["word", "Dr.", "3.14", "end.", "so,", "\n\n", "—", '"'])).map(
        " ".join
    ),
)


def bare(text: str) -> str:
    """Without whitespace and what cannot be encoded."""
    return re.sub(r"[\s\ud800-\udfff]", "", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \n\t ", ""),
        ("Hello", "Hello."),
        ("  Hello \t  world!  ", "Hello world!"),
        *((f"a{mark}", f"a{mark}") for mark in ENDS),
        ('He said "hi"', 'He said "hi".'),
        ("a\r\nb", "a\nb."),
        ("a\vb\fc\u2028d\u2029e\x85f", "a\nb\nc\nd\ne\nf."),
        ("a\n\n\n\nb", "a\n\nb."),
        ("a\n \n\t\nb", "a\n\nb."),
        ("a\u00a0b", "a\u00a0b."),
        ("MiXed Case", "MiXed Case."),
        ("a\ud83db", "ab."),
    ],
)
def test_sanitize(text: str, expected: str) -> None:
    assert sanitize(text) == expected


@given(texts)
def test_sanitizing_again_changes_nothing(text: str) -> None:
    assert sanitize(sanitize(text)) == sanitize(text)


@given(texts)
def test_sanitized_text_can_be_encoded_and_is_tidy(text: str) -> None:
    result = sanitize(text)
    result.encode("utf-8")
    assert result == result.strip()
    assert not re.search(r"  |\t|\n\n\n|[\r\v\f]", result)
    assert not result or result[-1] in ENDS


@pytest.mark.parametrize("segmentation", [RELEASED, SMALL])
@given(text=texts)
def test_nothing_but_whitespace_is_lost(segmentation: Segmentation, text: str) -> None:
    joined = "".join(segment.text for segment in split(text, segmentation))
    assert bare(joined) == bare(sanitize(text))


@pytest.mark.parametrize("segmentation", [RELEASED, SMALL])
@given(text=texts)
def test_segments_are_capped_stripped_numbered(segmentation: Segmentation, text: str) -> None:
    segments = split(text, segmentation)
    assert [segment.index for segment in segments] == list(range(len(segments)))
    assert [segment.last for segment in segments] == [False] * (len(segments) - 1) + [True] * (
        len(segments) > 0
    )
    for segment in segments:
        assert 0 < len(segment.text) <= segmentation.max_characters
        assert segment.text == segment.text.strip()


@given(texts)
def test_ranges_point_at_the_request(text: str) -> None:
    end = 0
    for segment in split(text, SMALL):
        assert end <= segment.start <= segment.end
        source, end = text[segment.start : segment.end], segment.end
        closed = segment.last and bare(source) + "." == bare(segment.text)
        assert closed or bare(source) == bare(segment.text)


@given(texts)
def test_a_segment_is_not_cut_again(text: str) -> None:
    for segment in split(text, SMALL):
        if segment.text[-1] in ENDS:
            assert [again.text for again in split(segment.text, SMALL)] == [segment.text]


def test_ranges_skip_collapsed_whitespace() -> None:
    text = "  One,  two  three\r\n\r\n\r\nFour   five "
    found = [text[segment.start : segment.end] for segment in split(text, SMALL)]
    assert found == ["One,", "two  three\r\n\r\n\r\nFour", "five"]


def test_ranges_go_through_a_traced_text() -> None:
    source = Traced.of("I paid 25 euros, no more").sub(re.compile("25"), "twenty-five")
    segments = split(source, Segmentation(max_characters=19))
    assert [(s.text, s.start, s.end) for s in segments] == [
        ("I paid twenty-five", 0, 9),
        ("euros, no more.", 10, 24),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aaa, bbb. cccccccccc", ["aaa, bbb.", "cccccccccc."]),
        ("aaa. bbb, cccccccccc", ["aaa. bbb,", "cccccccccc."]),  # one class, not two passes
        ("aaaa bbbb cccc dddd", ["aaaa bbbb cccc", "dddd."]),
        ("aaaa\nbbbbb\tccccccc", ["aaaa\nbbbbb", "ccccccc."]),
        ("a" * 40, ["a" * 16, "a" * 16, "a" * 8 + "."]),
        ("a" * 15 + ".", ["a" * 15 + "."]),
        ("a" * 15 + ". b", ["a" * 15 + ".", "b."]),
        ("- a leading dash is kept", ["- a leading", "dash is kept."]),
        ("... aaaaaa bbbbbb cc", ["... aaaaaa", "bbbbbb cc."]),
        ('She said "hello."', ['She said "hello.', '".']),  # the cap leaves no room
        ("aaaaaaaa bbbbb. ?!", ["aaaaaaaa bbbbb.", "?!"]),
        ("aaa bbbbbbbb.))))))))", ["aaa bbbbbbbb.", "))))))))."]),
        ("?!", ["?!"]),
    ],
)
def test_where_text_is_cut(text: str, expected: list[str]) -> None:
    assert [segment.text for segment in split(text, SMALL)] == expected


def test_a_closing_quote_stays_with_its_sentence() -> None:
    text = 'aa bb ccccc." dddddd eeeee'
    first = split(text, SMALL)[0]
    assert first.text == "aa bb ccccc."
    assert split('aa bb ccccc."', SMALL)[0].text == 'aa bb ccccc.".'


def test_hundreds_of_chunks() -> None:
    segments = split("one two three, " * 999, SMALL)
    assert len(segments) == 999
    assert {segment.text for segment in segments} == {"one two three,"}


def test_the_released_cap_is_used_to_the_full() -> None:
    sentence = "x" * 349 + "."
    assert [segment.text for segment in split(sentence * 3, RELEASED)] == [sentence] * 3


def test_boundary_cues() -> None:
    segments = split("one two three, four five six, seven", SMALL)
    assert [boundary_text(s) for s in segments] == [
        "one two three,",
        " four five six,",
        " seven.\n",
    ]
    assert boundary_text(split("one", SMALL)[0]) == "one.\n"


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        (" short.\n", 50, " short.\n"),
        (" one two three", 10, " one two"),
        (" one two three", 8, " one two"),
        (" onetwothree", 6, " onetw"),
        ("", 50, ""),
        (" one", 0, ""),
    ],
)
def test_lookahead(text: str, limit: int, expected: str) -> None:
    assert lookahead(text, limit) == expected


@given(texts, st.integers(0, 60))
def test_a_lookahead_is_a_short_beginning(text: str, limit: int) -> None:
    ahead = lookahead(text, limit)
    assert text.startswith(ahead) and len(ahead) <= limit
    assert ahead or not text or not limit


def pieces_of(text: str, *, cap: int = 60, first: int = 10) -> list[str]:
    segmenter = Segmenter(cap, first)
    return segmenter.push(text) + segmenter.flush()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi. How are you? Fine.", ["Hi.", "How are you?", "Fine."]),
        ("Well then, let us go. Now, or never.", ["Well then,", "let us go.", "Now, or never."]),
        ("Ask Dr. Smith or Mr. J. Doe. He knows.", ["Ask Dr. Smith or Mr. J. Doe.", "He knows."]),
        ("It costs 3.50 euros. Cheap.", ["It costs 3.50 euros.", "Cheap."]),
        ("Wir sehen uns am 3. Mai. Gut.", ["Wir sehen uns am 3. Mai.", "Gut."]),
        ("That was in 1999. Then it ended.", ["That was in 1999.", "Then it ended."]),
        ("Obst, z.B. Birnen. Gut.", ["Obst, z.B. Birnen.", "Gut."]),
        ('"Stop!" she said. "Go."', ['"Stop!"', "she said.", '"Go."']),
        ("Ada (b. 1815) and I. Then", ["Ada (b. 1815) and I.", "Then"]),
        ("A heading\n\nThen text.", ["A heading", "Then text."]),
        ("- one\n- two", ["- one\n- two"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_pieces_to_speak(text: str, expected: list[str]) -> None:
    assert pieces_of(text) == expected


def test_speaking_starts_before_the_sentence_is_complete() -> None:
    segmenter = Segmenter(350, 10)
    assert segmenter.push("Of course, I can") == ["Of course,"]
    assert segmenter.push(" tell you, and") == []
    assert segmenter.push(" I will. ") == []
    assert segmenter.push("It") == ["I can tell you, and I will."]
    assert segmenter.flush() == ["It"]


def test_after_a_flush_speaking_starts_early_again() -> None:
    segmenter = Segmenter(350, 5)
    assert segmenter.push("First one, then") == ["First one,"]
    assert segmenter.flush() == ["then"]
    assert segmenter.push("Second one, then") == ["Second one,"]


@given(texts, st.integers(20, 60))
def test_pieces_lose_only_whitespace_and_are_capped(text: str, cap: int) -> None:
    pieces = pieces_of(text, cap=cap)
    assert re.sub(r"\s", "", "".join(pieces)) == re.sub(r"\s", "", text)
    assert all(0 < len(piece) <= cap and piece == piece.strip() for piece in pieces)


@given(st.lists(texts, max_size=8), st.integers(20, 60))
def test_pieces_do_not_depend_on_how_the_text_came(parts: list[str], cap: int) -> None:
    segmenter = Segmenter(cap, 10)
    streamed = [piece for part in parts for piece in segmenter.push(part)] + segmenter.flush()
    assert streamed == pieces_of("".join(parts), cap=cap)


def test_traced_text_knows_its_source() -> None:
    traced = Traced.of("a  b").sub(re.compile(" +"), " ")
    assert (traced.text, traced.starts, traced.ends) == ("a b", (0, 1, 3), (1, 3, 4))
    assert traced.sub(re.compile(r"\Z"), ".").range() == (0, 4)
    assert Traced.of("").sub(re.compile(r"\Z"), ".").range() == (0, 0)


@given(texts, st.sampled_from([r"\s+", r"[a-z]+", r"\b", r"."]), st.sampled_from(["", "x", "yz"]))
def test_traced_substitution_is_plain_substitution(text: str, pattern: str, new: str) -> None:
    compiled = re.compile(pattern)
    traced = Traced.of(text).sub(compiled, new)
    assert traced.text == compiled.sub(new, text)
    assert len(traced.starts) == len(traced.ends) == len(traced.text)
    assert list(traced.starts) == sorted(traced.starts) and list(traced.ends) == sorted(traced.ends)
    assert all(0 <= s <= e <= len(text) for s, e in zip(traced.starts, traced.ends, strict=True))
