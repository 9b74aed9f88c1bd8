"""The corpus of seven languages and many speakers: who says what, in which style (Kokoro)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from tontaube.train import texts
from tontaube.train.corpus import ShardWriter
from tontaube.train.data import SHARD, drawn_style
from tontaube.train.phrases import phrases
from tontaube.train.teacher import STYLES, Line, Style, Utterance

Teacher = Callable[[Line, Style, int], Utterance | None]

LOCALES = {
    "german": "de",
    "spanish": "es",
    "french": "fr",
    "italian": "it",
    "dutch": "nl",
    "portuguese": "pt_BR",
    "english": "",
}
# never in training: the cloning test speaks with them
HELD_OUT = ("af_kore", "am_puck", "bf_lily", "bm_fable", "zf_xiaoyi", "hm_psi")
UNFIT = ("af_nicole", "am_santa", "em_santa", "pm_santa")  # one whispers, three play a part
BLENDS = 12  # averages of two voices, of each sex
PHRASES = 2500  # patterned lines a language


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


def lines(dialogue: Path, timbres: list[str], held_out: set[str], seed: int = 4) -> Iterator[Line]:
    """Endless lines: languages in turn, each one's texts shuffled, every line another speaker."""
    rng = random.Random(seed)
    pools = {}
    for language, locale in LOCALES.items():
        patterned = phrases(language, PHRASES) if locale else texts.templates(PHRASES)
        pool = [*texts.dialogue(dialogue, locale), *patterned]
        pool = [text for text in dict.fromkeys(pool) if text.casefold() not in held_out]
        pools[language] = rng.sample(pool, len(pool))
    at = 0
    while True:
        for language, pool in pools.items():
            yield Line(pool[at % len(pool)], language, rng.choice(timbres))
        at += 1


def build(
    teacher: Teacher, spoken: Iterator[Line], folder: Path, shards: range = range(100)
) -> None:
    """Speak the lines; write those shards of 1000 that are not there yet. Processes may share the
    work: each takes a part of the numbers."""
    for shard in range(shards.stop):
        writer = ShardWriter(folder, f"languages-{shard:03d}")
        chosen = [next(spoken) for _ in range(SHARD)]
        if writer.done or shard not in shards:
            continue
        for index, line in enumerate(chosen):
            number = shard * SHARD + index
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
