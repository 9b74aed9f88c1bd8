"""Sentences to be spoken by the teacher: Debian's fortunes, game dialogue, word lists, templates.

The texts are read from packages of the machine that trains and are never committed.
"""

from __future__ import annotations

import gettext
import gzip
import html
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

PLAIN = re.compile(r"(?:[^\W\d_]|[ ,.'!?;:¿¡\-])+")
SPOKEN = re.compile(r"[¿¡]?[^\W\d_a-zß-ÿ](?:.*[a-zß-ÿ])?.*[.!?]")
ACRONYM = re.compile(r"[A-ZÀ-Þ]{2,}")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
PARAGRAPH = re.compile(r"<p[^>]*>(.*?)</p>", re.S)
WORD = re.compile(r"(?:[^\W\d_]|')+")
SKIPPED_FORTUNES = {"ascii-art", "translate-me"}

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth twentieth thirtieth"
).split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
NAMES = (
    "Anna Ben Clara David Emma Frank Grace Henry Isabel Jack Kate Leo Maria Noah Olivia "
    "Peter Rosa Samuel Tina Victor Wendy Alice Robert Susan Thomas Laura Martin Julia George Helen"
).split()
PLACES = (
    "Berlin London Paris Madrid Rome Vienna Boston Chicago Dublin Oslo Prague Lisbon Sydney "
    "Toronto Zurich Hamburg Denver Houston Kyoto Cairo"
).split()
SHORT = (
    "Hi. Hello. Hello! Hi there. Yes. No. Okay. Thanks. Thank you. Thank you! Please. Sorry. "
    "Sure. Maybe. Stop. Wait. Really? Why? How? When? What? Who? Where? Right. Good. Great! "
    "Goodbye. Bye. Welcome. Exactly. Of course. Not yet. Come in. Good morning. Good night. "
    "See you. Go on."
)
SHORT_PIECES = re.findall(r"[^.!?]+[.!?]", SHORT)


def sentences(text: str, shortest: int = 6, longest: int = 170) -> Iterator[str]:
    """The plain sentences of a text: letters and ordinary punctuation only, no acronyms."""
    for piece in SENTENCE_END.split(re.sub(r"\s+", " ", text)):
        piece = piece.strip().strip('"')
        if (
            shortest <= len(piece) <= longest
            and PLAIN.fullmatch(piece)
            and SPOKEN.fullmatch(piece)
            and not ACRONYM.search(piece)
        ):
            yield piece


def fortunes(folder: Path) -> Iterator[str]:
    """Sentences of Debian's fortune files."""
    for path in sorted(folder.iterdir()):
        if "." in path.name or path.name in SKIPPED_FORTUNES:
            continue
        for entry in path.read_text("utf-8", errors="ignore").split("\n%\n"):
            yield from sentences(re.sub(r"\s*--.*$", "", entry, flags=re.S))


def dialogue(folder: Path, locale: str = "") -> Iterator[str]:
    """Sentences of gettext catalogues below a folder: a locale's, or the English message ids."""
    for path in sorted(folder.rglob(f"{locale or 'de'}/LC_MESSAGES/*.mo")):
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        for message, translation in catalogue.items():
            text = message[0] if isinstance(message, tuple) else message
            text = translation if locale else text.rpartition("^")[2]
            text = re.sub(r"<[^>]*>|[„“”«»]", "", text.replace("’", "'"))
            yield from sentences(text.replace("—", ", "))


def help_pages(folder: Path) -> Iterator[str]:
    """Sentences of the HTML pages below a folder."""
    for path in sorted(folder.rglob("*.html")):
        for paragraph in PARAGRAPH.findall(path.read_text("utf-8", errors="ignore")):
            yield from sentences(html.unescape(re.sub(r"<[^>]*>", "", paragraph)))


def lexicon_words(lexicon: Path) -> list[str]:
    """The words of a lexicon, gzipped JSON by word."""
    with gzip.open(lexicon) as file:
        return [w for w in json.load(file) if re.fullmatch(r"[a-z]{3,13}", w)]


def words(path: Path) -> list[str]:
    """The words of a list, one a line, in UTF-8."""
    found = path.read_text("utf-8").split()
    return [w for w in found if 3 <= len(w) <= 13 and w.isalpha() and not w.isupper()]


def word_lists(
    entries: Sequence[str], known: Iterable[str], count: int = 36_000, seed: int = 1
) -> Iterator[str]:
    """Lists of rarer words, so that spelling → sound is covered beyond the ``known`` sentences:
    ``count`` of the entries, and those that are rare there."""
    rng = random.Random(seed)
    seen = Counter(word.lower() for text in known for word in WORD.findall(text))
    pool = [w for w, n in seen.items() if n <= 6 and len(w) > 2 and w.isalpha()]
    pool += rng.sample(entries, min(count, len(entries)))
    rng.shuffle(pool)
    common = [w for w, _ in seen.most_common(400)]
    at = 0
    while at < len(pool):
        size = rng.randint(2, 8)
        chosen: list[str] = []
        for word in pool[at : at + size]:
            if rng.random() < 0.35:
                chosen.append(rng.choice(common))
            chosen.append(word)
        at += size
        joined = "".join(
            w + (", " if rng.random() < 0.25 and i < len(chosen) - 1 else " ")
            for i, w in enumerate(chosen)
        ).strip()
        yield joined[0].upper() + joined[1:] + rng.choice("..?!")


def number(n: int) -> str:
    """An integer below a million in English words."""
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10 - 2] + (f"-{ONES[n % 10]}" if n % 10 else "")
    if n < 1000:
        rest = f" and {number(n % 100)}" if n % 100 else ""
        return f"{ONES[n // 100]} hundred{rest}"
    rest = (" " if n % 1000 > 99 else " and ") + number(n % 1000) if n % 1000 else ""
    return f"{number(n // 1000)} thousand{rest}"


def templates(count: int, seed: int = 2) -> Iterator[str]:
    """Numbers, dates, times, questions, names and very short lines, from patterns."""
    rng = random.Random(seed)
    pick = rng.choice

    def some() -> int:
        return rng.randrange(10 ** rng.randint(1, 6))

    patterns = (
        lambda: f"{number(some())}.",
        lambda: f"It costs {number(some())} dollars and {number(rng.randrange(100))} cents.",
        lambda: (
            f"On {pick(DAYS)}, the {pick(ORDINALS)} of {pick(MONTHS)}, {pick(NAMES)} left for "
            f"{pick(PLACES)}."
        ),
        lambda: (
            f"The train to {pick(PLACES)} leaves at {number(rng.randint(1, 12))} "
            f"{number(rng.randint(10, 59))} in the {pick(['morning', 'evening', 'afternoon'])}."
        ),
        lambda: f"{pick(NAMES)} is {number(rng.randint(2, 99))} years old.",
        lambda: f"In nineteen {number(rng.randint(10, 99))} the city had {number(some())} people.",
        lambda: f"Has {pick(NAMES)} met {pick(NAMES)} in {pick(PLACES)}?",
        lambda: f"Why did {pick(NAMES)} call {pick(['twice', 'so late', 'on ' + pick(DAYS)])}?",
        lambda: f"My number is {', '.join(pick(ONES[:10]) for _ in range(rng.randint(3, 7)))}.",
        lambda: f"{number(rng.randint(1, 99))} point {pick(ONES[:10])} percent.",
        lambda: pick(SHORT_PIECES).strip(),
        lambda: f"{pick(NAMES)}.",
        lambda: f"{pick(NAMES)}, {pick(SHORT_PIECES).strip().lower()}",
        lambda: f"{pick(SHORT_PIECES).strip()} {pick(SHORT_PIECES).strip()}",
    )
    for _ in range(count):
        text = pick(patterns)()
        yield text[0].upper() + text[1:]
