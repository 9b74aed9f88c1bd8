"""Builds the corpus: texts → teacher speech → shards, resumable shard by shard."""

from __future__ import annotations

import random
import time
from pathlib import Path

from tontaube.train import texts
from tontaube.train.corpus import SAMPLE_RATE, ShardWriter
from tontaube.train.teacher import STYLES, Hibari

SHARD = 1000
STYLE_WEIGHTS = {"audiobook": 0.3, "conversational": 0.4, "agentic": 0.3}


def collect(fortunes: Path, dialogue: Path | None, held_out: set[str], seed: int = 0) -> list[str]:
    """All training texts, shuffled; none of the held-out ones among them."""
    import hibari

    lexicon = Path(hibari.__file__).parent / "assets" / "lexicon_us_gold.json.gz"
    plain = list(texts.fortunes(fortunes))
    if dialogue is not None:
        plain += texts.dialogue(dialogue)
    plain = list(dict.fromkeys(plain))
    lines = (
        plain
        + list(texts.word_lists(texts.lexicon_words(lexicon), plain))
        + list(texts.templates(5000))
    )
    unique = [line for line in dict.fromkeys(lines) if line.casefold() not in held_out]
    random.Random(seed).shuffle(unique)
    return unique


def drawn_style(number: int) -> str:
    """The style in which line ``number`` of a corpus is spoken."""
    names, weights = list(STYLE_WEIGHTS), list(STYLE_WEIGHTS.values())
    return random.Random(number).choices(names, weights)[0]


def build(lines: list[str], folder: Path, part: int = 0, parts: int = 1) -> None:
    """Speak every line in a style drawn from its number; write shards of 1000.

    Processes may share the work: each takes the shards whose number is ``part`` modulo ``parts``.
    """
    teacher = Hibari()
    started, seconds = time.monotonic(), 0.0
    for first in range(0, len(lines), SHARD):
        writer = ShardWriter(folder, f"shard-{first // SHARD:03d}")
        if writer.done or first // SHARD % parts != part:
            continue
        for number in range(first, min(first + SHARD, len(lines))):
            style = drawn_style(number)
            utterance = teacher(lines[number], STYLES[style], seed=number)
            if utterance is None:
                continue
            seconds += len(utterance.samples) / SAMPLE_RATE
            writer.add(
                utterance,
                id=f"{number:06d}",
                text=lines[number],
                language="english",
                style=style,
                speaker="heart",
            )
        writer.close()
        rate = seconds / (time.monotonic() - started)
        done = f"{first + SHARD} of {len(lines)}"
        print(f"{done}: {seconds / 3600:.1f} h, {rate:.0f}x real time", flush=True)
