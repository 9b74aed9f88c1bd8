"""What is trained on: texts, who says them, labels, the table of C0, the voices found in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest

from tests.training import code_table, items, spoken, write_codes, write_corpus
from tontaube.recordings import read_codes
from tontaube.train import languages, stages, texts
from tontaube.train.codes import CodedItem, load, triples, write_c0
from tontaube.train.corpus import Item, is_held_out, read
from tontaube.train.export import PROMPT_FRAMES, write_voices
from tontaube.train.phonemes import LENGTH, SPACE, STRESS, frames_of, heard, in_frames
from tontaube.train.table import CodeTable
from tontaube.train.teacher import Line, Style, Utterance
from tontaube.train.texts import number, sentences, templates


def test_the_corpus_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_corpus(tmp_path, 5)
    for i, item in enumerate(read(tmp_path)):
        original = spoken(1.3 + 0.1 * (i % 3), i)
        assert item.text == f"Line {i}."
        np.testing.assert_array_equal(item.samples, original.samples)
        assert item.triples().shape == (item.frames, 3)
        assert frames_of(item.phonemes) == item.frames
        assert item.pitch_at(100, 8).tolist() == [150] * 8


def test_texts() -> None:
    assert list(sentences('He left. NASA called! It is 5 pm. "So it goes," he said.')) == [
        "He left."
    ]
    assert number(1907) == "one thousand nine hundred and seven"
    assert number(40) == "forty" and number(21) == "twenty-one"
    assert all(line[0].isupper() and line[-1] in ".?!" for line in templates(200))


def test_word_lists_and_help_pages(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("Äpfel\nab\nNATO\nschön\nx1y\n", "utf-8")
    (tmp_path / "page.html").write_text(
        '<p id="a">Klik op <b>Openen</b> &amp; sluit.</p><p>Klik op <b>Openen</b> nu.</p><p>nee</p>'
    )
    assert texts.words(tmp_path / "words") == ["Äpfel", "schön"]
    assert list(texts.help_pages(tmp_path)) == ["Klik op Openen nu."]
    lines = list(texts.word_lists(["Äpfel", "schön"], ["Ein Baum."], 2))
    heard = " ".join(lines).casefold()
    assert all(word in heard for word in ("äpfel", "schön", "ein", "baum"))


def test_languages_take_turns_and_nothing_held_out_is_spoken(tmp_path: Path) -> None:
    voices = tmp_path / "voices"
    voices.mkdir()
    for name in ("af_a", "af_b", "am_c", "am_d", *languages.HELD_OUT, *languages.UNFIT):
        (voices / f"{name}.bin").touch()
    timbres = languages.speakers(voices)
    assert set(timbres) == {"af_a", "af_b", "am_c", "am_d", "af_a+af_b", "am_c+am_d"}
    held_out = {"hallo.", "hello."}
    found = languages.sentences(tmp_path, held_out)
    spoken = list(islice(languages.lines(found, lambda language: timbres), 700))
    order = list(languages.SOURCES)
    assert [line.language for line in spoken] == order * 100
    assert {line.timbre for line in spoken} == set(timbres)
    assert not held_out & {line.text.casefold() for line in spoken}


@pytest.mark.parametrize("labels", [False, True])
def test_processes_share_a_corpus_of_languages(labels: bool, tmp_path: Path) -> None:
    made: list[str] = []

    def teacher(line: Line, style: Style, seed: int) -> Utterance:
        made.append(line.text)
        return spoken(0.4, seed)

    def reader(line: Line, style: Style) -> np.ndarray:
        return teacher(line, style, 0).phonemes

    def lines() -> Iterator[Line]:
        return (Line(f"{n}.", "german", "af_a") for n in count())

    for part in (range(1, 3, 2), range(0, 3, 2), range(3)):
        if labels:
            languages.label(reader, lines(), tmp_path, part)
        else:
            languages.build(teacher, lines(), tmp_path, part)
    assert sorted(made, key=lambda text: int(text[:-1])) == [f"{n}." for n in range(3_000)]
    found = load(tmp_path, 1) if labels else list(read(tmp_path))
    assert [item.text for item in found] == [f"{n}." for n in range(3_000)]
    assert {item.speaker for item in found} == {"af_a"}


def test_marks_give_their_time_to_a_sound() -> None:
    a, b, c = 43, 44, 45
    stress, other = STRESS
    for labels, wanted in (
        ([a, stress, stress, b, b], [a, b, b, b, b]),
        ([a, LENGTH, LENGTH, b], [a, a, a, b]),
        ([a, SPACE, stress, b, LENGTH, c], [a, b, b, b, b, c]),
        ([a, SPACE, SPACE, SPACE, b], [a, SPACE, SPACE, SPACE, b]),  # a pause is heard
        ([a, SPACE, SPACE, other], [a, other, other, other]),  # nothing comes that could be
        ([LENGTH, a], [LENGTH, a]),
        ([a], [a]),
    ):
        assert heard(np.array(labels, np.uint8)).tolist() == wanted
    labels = np.repeat(np.arange(40, 60), 4).astype(np.uint8)  # 0.1 s each
    assert in_frames(labels, frames_of(labels))[:5].tolist() == [
        [40, 40, 40], [40, 41, 41], [41, 42, 42], [42, 42, 43], [43, 43, 43]
    ]  # fmt: skip


def test_a_table_names_what_is_common_and_writes_the_rest_as_the_nearest() -> None:
    common = np.array([[1, 1, 1], [1, 1, 2], [2, 2, 2], [2, 2, 3], [3, 4, 4], [4, 4, 4]])
    spoken_ = [("german", common.repeat(9, 0)), ("dutch", np.array([[1, 2, 2], [1, 1, 1]]))]
    table = CodeTable.of(spoken_, 7)
    code = {tuple(triple): n for n, triple in enumerate(table.triples.tolist())}
    assert set(code) == {*map(tuple, common.tolist()), (1, 2, 2)}  # languages count alike
    wanted = {
        (1, 1, 2): (1, 1, 2),
        (3, 3, 4): (3, 4, 4),  # a boundary moves
        (2, 3, 3): (2, 2, 3),
        (1, 2, 1): (1, 2, 2),
        (4, 4, 5): (4, 4, 4),  # what no code has is lost, nothing else comes in
    }
    found = table.codes(np.array(list(wanted)))
    assert found.tolist() == [code[triple] for triple in wanted.values()]


def test_a_table_is_written_once_and_names_labels_and_speech_alike(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", 3)
    spoken_ = list(read(tmp_path / "corpus"))
    labelled = [replace_codes(item) for item in spoken_]
    write_codes(tmp_path / "labels", labelled, "labels-000.json")
    code_table(spoken_).save(tmp_path / "table.npy")
    table = CodeTable.load(tmp_path / "table.npy")
    for _ in range(2):
        write_c0(tmp_path, table, tmp_path / "codes")
    by_id = {item.id: item.codes.tolist() for item in load(tmp_path / "codes", 1)}
    assert len(by_id) == 6 and all(by_id[item.id] == by_id[f"t{item.id}"] for item in spoken_)
    assert len(list(triples(tmp_path))) == 6


def replace_codes(item: Item) -> CodedItem:
    about = (f"t{item.id}", item.text, item.language, item.style, item.speaker)
    return CodedItem(*about, item.phonemes[None].astype(np.int64))


def test_one_sentence_of_many_is_held_out() -> None:
    share = sum(is_held_out(f"{n:06d}") for n in range(20_000)) / 20_000
    assert 0.004 < share < 0.006


def test_large_languages_do_not_drown_small_ones() -> None:
    coded = items(9)
    mixed = coded[:8] + [replace(item, language="dutch") for item in coded[:2]]
    drawn = stages.weights(mixed)
    assert sum(drawn[:8]) == pytest.approx(2 * sum(drawn[8:]))
    assert len(set(stages.weights(coded))) == 1


def test_a_speakers_prompt_is_of_the_own_language_if_it_can_be(tmp_path: Path) -> None:
    coded = [replace(item, speaker="heart") for item in items(12)]
    assert write_voices(coded, tmp_path / "voices")[0].codes is None  # one speaker: no prompt
    coded[3] = replace(coded[3], style="conversational", language="german", speaker="af_bella")
    coded[4] = replace(coded[4], style="conversational", speaker="af_bella")
    coded[5] = replace(coded[5], speaker="nobody")
    coded[6] = replace(coded[6], style="conversational")
    heart, greta = write_voices(coded, tmp_path / "voices")
    assert (heart.id, heart.language, greta.id, greta.language) == (
        "heart", "english", "greta", "german"
    )  # fmt: skip
    found = read_codes(tmp_path / str(greta.codes))
    np.testing.assert_array_equal(found, np.concatenate([coded[3].codes, coded[4].codes], 1))
    found = read_codes(tmp_path / str(heart.codes))
    assert found.shape[1] >= PROMPT_FRAMES and len(found) == 4
    np.testing.assert_array_equal(found[:, : coded[6].codes.shape[1]], coded[6].codes)
