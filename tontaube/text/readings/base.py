"""The words with which each language reads numbers, signs and abbreviations: tables, no rules.

``name=singular/plural`` (a plural left out is the same word; ``*`` marks a feminine noun).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Noun(NamedTuple):
    """A counted word."""

    one: str
    many: str
    feminine: bool = False


def table(text: str) -> dict[str, str]:
    entries = (entry.partition("=") for entry in text.replace("\n", ";").split(";"))
    return {name.strip(): word.strip() for name, _, word in entries if name.strip()}


def nouns(text: str) -> dict[str, Noun]:
    found = {}
    for name, words in table(text).items():
        one, _, many = words.partition("/")
        bare = one.rstrip("*")
        found[name] = Noun(bare, many or bare, one.endswith("*"))
    return found


@dataclass(frozen=True, slots=True)
class Reading:
    """One language. ``signs`` also holds the words of URLs and of ``-`` between numbers ("to")."""

    number_language: str  # its name in num2words
    decimal: str  # the decimal sign in numbers: "." or ","
    months: tuple[str, ...]
    date: str  # over {day} and {month}
    dated_year: str  # over {date} and {year}
    hour: Noun  # over {h}
    minute: str  # over {hour} (the above), {h} and {m}
    time_suffix: str  # a pattern of what may follow a time and is part of it
    magnitudes: str  # a pattern of words like "million"
    signs: dict[str, str] = field(repr=False)
    fractions: dict[str, str] = field(repr=False)
    currencies: dict[str, Noun] = field(repr=False)
    cents: dict[str, Noun] = field(repr=False)
    cents_joint: str  # between whole and hundredths
    cents_named: bool
    units: dict[str, Noun] = field(repr=False)
    abbreviations: dict[str, str] = field(repr=False)
