"""Written numbers → words of one language, with the agreement that a following noun asks for."""

from __future__ import annotations

import re

from num2words import num2words

from tontaube.errors import InvalidRequest
from tontaube.text.readings import READINGS
from tontaube.text.readings.base import Noun

_LONGEST = 15  # digits read as one number; longer ones are read digit by digit
_SHORTEST_NOUN = 3  # shorter words after a number are no nouns: "uno de", "um a"
_FEMININE = {
    "es": re.compile(r"(?:as?|ción|ciones|sión|dad(?:es)?)\Z"),
    "it": re.compile(r"(?:[aà]|zioni|zione)\Z"),
    "pt_BR": re.compile(r"(?:as?|ções|ção|dades?|gem|gens)\Z"),
    "fr": re.compile(
        r"(?:ée|tion|sion|té|heure|minute|seconde|semaine|fois|personne|page|femme|fille|[ae]nce"
        r"|ette|esse)s?\Z"
    ),
    "de": re.compile(r"(?:e|ung|heit|keit|schaft|ion)\Z"),
}
_ONE = {  # the number's last word → before a masculine and a feminine noun
    "es": {"uno": ("un", "una"), "veintiuno": ("veintiún", "veintiuna")},
    "it": {"uno": ("un", "una")},
    "pt_BR": {"um": ("um", "uma"), "dois": ("dois", "duas")},
    "fr": {"un": ("un", "une")},
    "de": {"eins": ("ein", "eine")},
}
_WHOLE_ONLY = ("de", "it")  # where only 1 itself agrees: "ein Haus", but "hunderteins Häuser"


class Numerals:
    """Reads the numbers of one language."""

    def __init__(self, language: str) -> None:
        """Raises InvalidRequest for a language without a reading."""
        if language not in READINGS:
            known = ", ".join(READINGS)
            raise InvalidRequest(
                f"unknown language {language!r}; choose one of: {known}", "language"
            )
        self.reading = READINGS[language]
        self._name = self.reading.number_language
        thousands, decimal = (",", r"\.") if self.reading.decimal == "." else (r"[.'’ ]", ",")
        grouped = rf"\d{{1,3}}(?:{thousands}\d{{3}})+(?!\d)"
        other = r"\.\d+" if decimal == "," else decimal + r"\d+"
        # A plain decimal point is also understood where the comma is usual: "3.5".
        # Atomic, and never begun inside a number: else the cost of long ones would be quadratic.
        self.pattern = rf"(?<!\d)(?>{grouped}(?:{decimal}\d+)?|\d+(?:{decimal}\d+|{other})?)"
        self._grouping = re.compile(rf"\A{grouped}")
        self._digits = [self.cardinal(digit) for digit in range(10)]
        self._thousands = re.compile(thousands)

    def cardinal(self, number: int) -> str:
        """An integer of at most 15 digits."""
        words = str(num2words(number, lang=self._name)).replace(",", "")
        if self._name == "es":
            words = words.replace("veintiuno mil", "veintiún mil").replace("uno mil", "un mil")
        if self._name == "it" and words.endswith("tre") and words != "tre":
            words = f"{words[:-1]}é"
        return words

    def digits(self, digits: str) -> str:
        """Digit by digit."""
        return " ".join([self._digits[int(digit)] for digit in digits])

    def split(self, number: str) -> tuple[str, str]:
        """What ``pattern`` matched → its whole and its fractional digits, without separators."""
        grouped = self._grouping.match(number)
        end = grouped.end() if grouped else len(re.match(r"\d*", number)[0])  # type: ignore[index]
        whole = self._thousands.sub("", number[:end])
        return whole, number[end + 1 :]

    def number(self, number: str, noun: Noun | str | None = None) -> str:
        """A number as ``pattern`` matches it, agreeing with the noun that follows."""
        whole, fraction = self.split(number)
        if len(whole) > _LONGEST or (len(whole) > 1 and whole[0] == "0"):
            words = self.digits(whole)
        else:
            words = self.cardinal(int(whole))
        if fraction:
            return f"{words} {self.reading.signs['.']} {self._fraction(fraction)}"
        return self._agree(words, noun)

    def _fraction(self, digits: str) -> str:
        if self._name in ("en", "de") or len(digits) > 2 or digits[0] == "0":
            return self.digits(digits)
        return self.cardinal(int(digits))

    def counted(self, number: str, noun: Noun) -> str:
        """A number and its noun: "one kilometer", "two kilometers"."""
        whole, fraction = self.split(number)
        one = whole.lstrip("0") == "1" and not fraction
        french_one = self._name in ("fr", "pt_BR") and whole.lstrip("0") in ("", "1")
        return f"{self.number(number, noun)} {noun.one if one or french_one else noun.many}"

    def year(self, year: int) -> str:
        """A year: "nineteen ninety-nine"; like any number where nothing else is usual."""
        if self._name == "en" or (self._name in ("de", "nl") and 1100 <= year < 2000):
            words = str(num2words(year, lang=self._name, to="year")).replace("oh-", "oh ")
            return words.replace(" ", "") if self._name == "nl" else words
        return self.cardinal(year)

    def ordinal(self, number: int, feminine: bool = False) -> str:
        """First, second … (0 and long numbers have none and are read as they are)."""
        if number <= 0 or number > 9999:
            return self.cardinal(number)
        words = str(num2words(number, lang=self._name, to="ordinal")).replace(",", "")
        if feminine and self._name in ("es", "it", "pt_BR"):
            words = re.sub(r"o\b", "a", words)
        return "première" if feminine and words == "premier" else words

    def day(self, day: int) -> str:
        """The day in a date: ordinal in English and German, elsewhere only the first (if any)."""
        first_only = self._name in ("fr", "it", "pt_BR") and day == 1
        ordinal = first_only or self._name in ("en", "de")
        return self.ordinal(day) if ordinal else self.cardinal(day)

    def _agree(self, words: str, noun: Noun | str | None) -> str:
        forms = _ONE.get(self._name)
        if noun is None or forms is None:
            return words
        head, space, last = words.rpartition(" ")
        if last not in forms or (head and self._name in _WHOLE_ONLY):
            return words
        if isinstance(noun, str):
            endings = _FEMININE.get(self._name)
            if endings is None or len(noun) < _SHORTEST_NOUN:
                return words
            feminine = endings.search(noun.lower()) is not None
        else:
            feminine = noun.feminine
        return f"{head}{space}{forms[last][feminine]}"
