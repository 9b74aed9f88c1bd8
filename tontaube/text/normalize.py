"""Text as people write it → text as it is read aloud, each character traced to the original.

Rules in a fixed order, from the specific (dates) to the general (any number); the words are in
``readings``, the numbers in ``numerals``, markup and odd characters in ``markup``.
"""

from __future__ import annotations

import re
from functools import cache

from tontaube.text.markup import LETTERS, MARKS, plain
from tontaube.text.measures import Measures
from tontaube.text.numerals import Numerals
from tontaube.text.traced import Traced

READABLE = re.compile(rf"[{LETTERS}{MARKS} \n]*")

_LETTER = re.compile(f"[{LETTERS}]")
_UNREADABLE = re.compile(rf"[^{LETTERS}{MARKS} \n]")
_INITIALS = re.compile(r"\b(?:[A-Za-z]\.){2,}(?!\w)")
_ROMAN = re.compile(r"(?<=\w )(?=[IVX]{2})(X{0,3})(IX|IV|V?I{0,3})\b(?!')")
_ITALIAN_CENTURY = re.compile(r"\b(?=[IVX])(X{0,3})(IX|IV|V?I{0,3})(?= secolo\b)")
_GERMAN_REGNAL = re.compile(
    r"(?<=[a-z] )(?=[IVX]{1,6}\. [a-zäöü])(X{0,3})(IX|IV|V?I{0,3})\.(?= [a-zäöü])"
)
_FRENCH_CENTURY = re.compile(r"\b(?=[IVX])(X{0,3})(IX|IV|V?I{0,3})(er|re|e|ème)\b")
_BEFORE_ROMAN = re.compile(rf"(?:[A-ZÀ-Ý][{LETTERS}]+|siglo|secolo|século|siècle) \Z")
_GERMAN_ORDINAL = re.compile(
    r"\b((?:[Dd](?:er|ie|as|em|en|es)|[Aa]m|[Ii]m|[Zz]um|[Zz]ur|[Vv]om|[Bb]eim|jede[rsnm]?) )"
    r"(\d{1,4})\.(?= [^\W\d_])"
)
_NUMBER_SIGN = re.compile(r"(?:\b(?:No|Nr|nr|núm)\. ?|\b[Nn](?:\.[º°]?|[º°]\.?) ?|#)(?=\d)")
_HASHTAG = re.compile(rf"#(?=[{LETTERS}])")
_DECADE = re.compile(r"(?<![\d.,$£€])'?((?:1[1-9]|20)?[1-9]0|(?:1[1-9]|20)00)'?s\b")
_GERMAN_DECADE = re.compile(r"\b(\d{2,4})er(n?)\b")
_YEAR = re.compile(r"(?<![\w.,:/-])(?:1[1-9]|20)\d\d(?![\w/:])(?![.,]\d)")
_PRODUCT = re.compile(r"(?<=\d) ?[x×] ?(?=\d)")
_TIMES = re.compile(r"(?<=\w) \* (?=\w)| ?× ?")
_POWER = re.compile(r"\^|(?<=\w)([²³])")
_POINT = re.compile(r"(?<=\d)\.(?=\d)|(?<=[a-z])\.(?=[a-z])")
_COMPARED = re.compile(r"(?<=[\w)]) ?([<>]) ?(?=\w)")
_ARROW = re.compile(r" ?(?:[-=]+>|→) ?")
_DASH = re.compile(r" ?— ?| -{1,3} | ?-{2,} ?")
_SENTENCE = re.compile(
    rf"(?:\A|(?<=[.!?] )|(?<=\n))[\"'(¿¡]?([a-zà-ÿ])(?=[{LETTERS} ,;:'()\"-]*[.!?])"
)
_FREE_HYPHEN = re.compile(r"(?<!\w)-+|-+(?!\w)")

_TIDY = (
    (re.compile(" {2,}"), " "),
    (re.compile(r" (?=[.,!?;:)\n])|(?<=[(\n¿¡]) "), ""),
    (re.compile(r"\([^\w)]{0,8}\)"), ""),
    (re.compile(r"""(?<![\w.,!?;:'")])(?:"\s*"|'+(?!\w))"""), ""),
    (re.compile(r",(?=[.,!?;:])|(?<=[.!?;:¿¡(]),"), ""),
    (re.compile(r"(?<!\.)\.\.(?!\.)"), "."),
    (re.compile(r"\.{4,}"), "..."),
    (re.compile(r"\A[\s,.;:)-]+|\s+\Z"), ""),
    (re.compile(r"!{2,}"), "!"),
    (re.compile(r"\?{2,}"), "?"),
    (re.compile(r";{2,}"), ";"),
    (re.compile(r":{2,}"), ":"),
    (re.compile(" {2,}"), " "),
    (re.compile("\n(?: ?\n)+"), "\n\n"),
)


def normalize(text: str, language: str) -> Traced:
    """The text to speak, in letters and punctuation; empty if nothing can be read.

    ``language`` is a label ("english"). Raises InvalidRequest for an unknown one, else never.
    """
    return _reader(language)(text)


@cache
def _reader(language: str) -> Reader:
    return Reader(language)


class Reader:
    """The rules of one language, compiled."""

    def __init__(self, language: str) -> None:
        self._numerals = numerals = Numerals(language)
        self._signs = numerals.reading.signs
        self._language = language
        self._measures = Measures(numerals)
        self._abbreviations = _any_of(numerals.reading.abbreviations)
        self._number = re.compile(rf"{numerals.pattern}(?=(?: ([{LETTERS}]+))?)")
        self._signs_left = re.compile(r"[&+@%‰§°~±÷]|=+|[$€£¥₹](?!\w)")

    def __call__(self, text: str) -> Traced:
        source = plain(Traced.of(text), self._signs)
        for rules in (self._words, self._measures, self._counts, self._leftovers):
            source = rules(source)
        source = source.sub(_SENTENCE, lambda match: _capital(match, source, text))
        return source if _LETTER.search(source.text) else source[:0]

    def _words(self, source: Traced) -> Traced:
        """Abbreviations, Roman numerals, ordinals and decades known by their neighbours."""
        source = source.sub(self._abbreviations, self._abbreviation)
        source = source.sub(_INITIALS, lambda match: _stopped(match, " ".join(match[0][::2])))
        if self._language == "german":
            source = source.sub(_GERMAN_REGNAL, self._german_regnal)
            source = source.sub(_GERMAN_ORDINAL, self._german_ordinal)
            source = source.sub(_GERMAN_DECADE, self._german_decade)
        if self._language == "english":
            source = source.sub(_DECADE, self._decade)
        if self._language == "french":
            source = source.sub(_FRENCH_CENTURY, lambda m: f"{_roman(m[1], m[2])}{m[3]}")
        if self._language == "italian":
            source = source.sub(_ITALIAN_CENTURY, lambda m: f"{_roman(m[1], m[2])}º")
        source = source.sub(_ROMAN, _arabic)
        return source.sub(_NUMBER_SIGN, f"{self._signs['No']} ")

    def _counts(self, source: Traced) -> Traced:
        """Everything with a digit in it that no measure took."""
        signs, numerals = self._signs, self._numerals
        source = source.sub(_PRODUCT, f" {signs['x']} ").sub(_POWER, self._power)
        source = source.sub(_YEAR, lambda match: numerals.year(int(match[0])))
        source = source.sub(self._number, self._any_number)
        return source.sub(_POINT, f" {signs['dot']} ")

    def _leftovers(self, source: Traced) -> Traced:
        """Signs, dashes, then whatever cannot be read."""
        signs = self._signs
        source = source.sub(_HASHTAG, f"{signs['#']} ").sub(_ARROW, ", ")
        source = source.sub(_TIMES, f" {signs['*']} ")
        source = source.sub(_COMPARED, lambda match: f" {signs[match[1]]} ")
        source = source.sub(self._signs_left, self._sign).sub(_DASH, ", ")
        source = source.sub(_FREE_HYPHEN, " ").sub(_UNREADABLE, " ")
        untidy = None
        while untidy is not source:  # each round removes something, or is the last
            untidy = source
            for pattern, new in _TIDY:
                source = source.sub(pattern, new)
        return source

    def _abbreviation(self, match: re.Match[str]) -> str:
        words = self._numerals.reading.abbreviations
        found = match[0]
        full = words.get(found)
        if full is None:  # the same at the beginning of a sentence
            full = words[found[0].lower() + found[1:]]
            full = full[0].upper() + full[1:]
        return _stopped(match, full[:-1]) if full.endswith(".") else full

    def _german_ordinal(self, match: re.Match[str]) -> str:
        ordinal = self._numerals.ordinal(int(match[2]))
        nominative = match[1].lower().startswith(("der", "die", "das", "jede "))
        return f"{match[1]}{ordinal}{'' if nominative else 'n'}"

    def _german_regnal(self, match: re.Match[str]) -> str:
        return f"der {self._numerals.ordinal(int(_roman(match[1], match[2]))).capitalize()}"

    def _german_decade(self, match: re.Match[str]) -> str:
        return f"{self._numerals.year(int(match[1]))}er{match[2]}"

    def _decade(self, match: re.Match[str]) -> str:
        year = self._numerals.year(int(match[1]))
        return f"{year[:-1]}ies" if year.endswith("y") else f"{year}s"

    def _power(self, match: re.Match[str]) -> str:
        exponent = {"²": "2", "³": "3", None: ""}[match[1]]
        return f" {self._signs['^']} {exponent}"

    def _any_number(self, match: re.Match[str]) -> str:
        """A number, set apart from letters it touches ("H2O")."""
        text, (first, last) = match.string, match.span()
        before = " " if first and text[first - 1].isalpha() else ""
        after = " " if last < len(text) and text[last].isalpha() else ""
        return f"{before}{self._numerals.number(match[0], match[1])}{after}"

    def _sign(self, match: re.Match[str]) -> str:
        sign = match[0]
        currency = self._numerals.reading.currencies.get(sign)
        word = currency.many if currency else self._signs["eq" if sign[0] == "=" else sign]
        after_apostrophe = match.string[max(0, match.start() - 1) : match.start()] == "'"
        return f"{word} " if after_apostrophe else f" {word} "


def _any_of(words: dict[str, str]) -> re.Pattern[str]:
    """Any of the words, also with a capital at the beginning, the longest first."""
    forms = sorted({form for word in words for form in (word, word[0].upper() + word[1:])})
    longest_first = sorted(forms, key=len, reverse=True)
    return re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")


def _stopped(match: re.Match[str], words: str) -> str:
    """``words`` for an abbreviation, with a full stop if its own also ended the sentence."""
    following = match.string[match.end() : match.end() + 3].lstrip(" \"')")
    last = match.end() == len(match.string) or following[:1] == "\n"
    return f"{words}." if last or following[:1].isupper() else words


def _capital(match: re.Match[str], source: Traced, original: str) -> str:
    """The first letter of a sentence as a capital, where it was no letter: "3 cats came."."""
    was = original[source.starts[match.start(1)]]
    return match[0] if was.isalpha() else match[0].upper()


def _arabic(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 24) : match.start()]
    tens, ones = match[1], match[2]
    return _roman(tens, ones) if _BEFORE_ROMAN.search(before) and tens + ones else match[0]


def _roman(tens: str, ones: str) -> str:
    units = {"IX": 9, "IV": 4}.get(ones, 5 * ones.count("V") + ones.count("I"))
    return str(10 * len(tens) + units)
