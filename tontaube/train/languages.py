"""The corpora of seven languages and many speakers: who says what, in which style (Kokoro).

One is speech, for the codec and CB1..CB3. The other, ten times as quick to make, is only labels:
C0 is what phonemes say, so CB0 can learn from sentences that nobody has ever heard.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tontaube.train import texts
from tontaube.train.codes import CodedItem, save_shard
from tontaube.train.corpus import ShardWriter
from tontaube.train.data import SHARD, drawn_style
from tontaube.train.phrases import phrases
from tontaube.train.teacher import STYLES, Line, Style, Utterance


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a language's texts are: locale of gettext catalogues, list of words, help pages."""

    locale: str
    words: str = ""
    help: str = ""


SOURCES = {
    "german": Sources("de", "ngerman"),
    "spanish": Sources("es", "spanish"),
    "french": Sources("fr", "french"),
    "italian": Sources("it", "italian"),
    "dutch": Sources("nl", "dutch", "nl"),
    "portuguese": Sources("pt_BR", "brazilian"),
    "english": Sources(""),
}
# never in training: the cloning test speaks with them
HELD_OUT = ("af_kore", "am_puck", "bf_lily", "bm_fable", "zf_xiaoyi", "hm_psi")
UNFIT = ("af_nicole", "am_santa", "em_santa", "pm_santa")  # one whispers, three play a part
BLENDS = 12  # averages of two voices, of each sex
PHRASES = 2500  # patterned lines a language
WORDS = 30_000  # of a list

Teacher = Callable[[Line, Style, int], Utterance | None]
Reader = Callable[[Line, Style], npt.NDArray[np.uint8] | None]


def speakers(voices: Path, held_out: bool = False) -> list[str]:
    """Timbres by name: the voices of a folder, and averages ``a+b`` of two of the same sex."""
    if held_out:
        return list(HELD_OUT)
    single = sorted(path.stem for path in voices.glob("*.bin"))
    single = [name for name in single if name not in (*HELD_OUT, *UNFIT)]
    rng = random.Random(3)
    blends: list[str] = []
    for sex in "fm":
        same = [name for name in single if name[1] == sex]
        pairs = [f"{a}+{b}" for i, a in enumerate(same) for b in same[i + 1 :]]
        blends += rng.sample(pairs, min(BLENDS, len(pairs)))
    return single + blends


def sentences(
    dialogue: Path, held_out: set[str], words: Path | None = None, pages: Path | None = None
) -> dict[str, list[str]]:
    """Each language's texts, shuffled: dialogue, patterned lines, with ``words`` (a folder of
    word lists) and ``pages`` (of help pages) those too."""
    rng = random.Random(4)
    found = {}
    for language, source in SOURCES.items():
        patterned = phrases(language, PHRASES) if source.locale else texts.templates(PHRASES)
        pool = [*texts.dialogue(dialogue, source.locale), *patterned]
        if pages and source.help:
            pool += texts.help_pages(pages / source.help)
        if words and source.words:
            pool += texts.word_lists(texts.words(words / source.words), pool, WORDS)
        pool = [text for text in dict.fromkeys(pool) if text.casefold() not in held_out]
        found[language] = rng.sample(pool, len(pool))
    return found


def lines(
    found: Mapping[str, Sequence[str]],
    timbres: Callable[[str], Sequence[str]],
    seed: int = 4,
) -> Iterator[Line]:
    """Endless lines: languages in turn, every line another of the language's ``timbres``."""
    rng = random.Random(seed)
    at = 0
    while True:
        for language, pool in found.items():
            yield Line(pool[at % len(pool)], language, rng.choice(timbres(language)))
        at += 1


def build(
    teacher: Teacher, spoken: Iterator[Line], folder: Path, shards: range = range(100)
) -> None:
    """Speak the lines; write those shards of 1000 that are not there yet. Processes may share the
    work: each takes a part of the numbers."""
    for shard, chosen in _chosen(spoken, shards):
        writer = ShardWriter(folder, f"languages-{shard:03d}")
        if writer.done:
            continue
        for number, line in chosen:
            style = drawn_style(number)
            utterance = teacher(line, STYLES[style], number)
            if utterance is None:
                continue
            writer.add(
                utterance,
                id=f"l{number:06d}",
                text=line.text,
                language=line.language,
                style=style,
                speaker=line.timbre,
            )
        writer.close()
        print(f"shard {shard} of {shards.stop}", flush=True)


def label(reader: Reader, read: Iterator[Line], folder: Path, shards: range = range(100)) -> None:
    """Label the lines without speaking them, as ``build`` does: shards of ``CodedItem`` whose one
    stream is phonemes at 40 a second."""
    folder.mkdir(parents=True, exist_ok=True)
    for shard, chosen in _chosen(read, shards):
        index = folder / f"labels-{shard:03d}.json"
        if index.exists():
            continue
        items = []
        for number, line in chosen:
            style = drawn_style(number)
            phonemes = reader(line, STYLES[style])
            if phonemes is not None:
                about = (f"t{number:06d}", line.text, line.language, style, line.timbre)
                items.append(CodedItem(*about, phonemes[None].astype(np.int64)))
        save_shard(index, items, [item.codes for item in items])
        print(f"shard {shard} of {shards.stop}", flush=True)


def _chosen(endless: Iterator[Line], shards: range) -> Iterator[tuple[int, list[tuple[int, Line]]]]:
    """The shards of a range, each with its lines and their numbers."""
    for shard in range(shards.stop):
        numbered = [(shard * SHARD + i, next(endless)) for i in range(SHARD)]
        if shard in shards:
            yield shard, numbered
