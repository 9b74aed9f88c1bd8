"""Dates, times, telephone numbers, money, units and ordinals in a text → words."""

from __future__ import annotations

import re

from tontaube.text.numerals import Numerals
from tontaube.text.readings.base import Noun
from tontaube.text.traced import Traced

_ISO_DATE = re.compile(r"(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?![\d-])")
_DATE = re.compile(r"(?<![\w./-])(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?!\w|[./-]\d)")
_PHONE = re.compile(
    r"(?<![\w.])(?:\+\d[\d ()/-]{6,18}\d|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4}|\d{3}-\d{4}"
    r"|0\d{2,5}[ /-]\d{3,8}(?:[ -]\d{2,4}){0,3})(?![\w-])"
)
_VERSION = re.compile(r"(?<![\w.,])\d+(?:\.\d+){2,}(?![\w,])|(?<=\bv)\d+(?:\.\d+){2,}")
_GROUPED = re.compile(r"\d{1,3}(?:\.\d{3})+")
_ALL_DAY = re.compile(r"\b24/7\b")
_RANGE = re.compile(r"(?<=\d)(?: ?— ?|-|:)(?=[$€£]?\d)|(?<=[%€$£°]) ?— ?(?=\d)")
_DIFFERENCE = re.compile(r"(?<=\d) - (?=\d)")
_MINUS = re.compile(r"(?<![\w)])-(?=[$€£]?\d)")
_HALF_DAY = re.compile(
    r"(?<![\d:.,])(1[0-2]|0?[1-9])(?::([0-5]\d))? ?([AaPp])"
    r"(?:[Mm]\b|\.[Mm](?:\.(?=[ ,]?[^A-Z\s])|\b))"
)
_ENGLISH_ORDINAL = re.compile(r"(?<![\d.,])(\d{1,3}(?:,\d{3}){1,3}|\d{1,9})(?:st|nd|rd|th)\b")
_FRENCH_ORDINAL = re.compile(r"(?<![\d.,])(\d{1,4})(ers?|res?|ères?|e|es|èmes?|emes?|nde?)\b")
_DUTCH_ORDINAL = re.compile(r"(?<![\d.,])(\d{1,4})(?:e|ste|de)\b")
_MARKED_ORDINAL = re.compile(r"(?<![\d.,])(\d{1,4})\.?(º|ª|°(?! ?[CF])|er\b)")
_GERMAN_DATIVE = re.compile(r"\b(?:am|vom|zum|dem|den|bis|ab|seit|im|beim) \Z", re.IGNORECASE)
_GERMAN_NOMINATIVE = re.compile(r"\b(?:der|die|das) \Z", re.IGNORECASE)
_CURRENCY_CODES = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥", "US$": "$", "BRL": "R$"}
_SUFFIXES = {"k": 1_000, "m": 1_000_000, "bn": 1_000_000_000, "b": 1_000_000_000}


class Measures:
    """The rules of one language, compiled; a Traced in, a Traced out."""

    def __init__(self, numerals: Numerals) -> None:
        reading = numerals.reading
        self._numerals = numerals
        self._reading = reading
        self._english = reading.decimal == "."
        self._month_numbers = {name.lower(): i for i, name in enumerate(reading.months)}
        number, magnitudes = numerals.pattern, reading.magnitudes
        months = "|".join(sorted(self._month_names(), key=len, reverse=True))
        self._month_first = re.compile(
            rf"\b({months})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? ((?:1\d|20)\d\d)\b)?"
        )
        self._day_first = re.compile(
            rf"(?<![\w.,:])(\d{{1,2}})(?:\.|º|er|st|nd|rd|th)? ?(?:de |of )?({months})\b"
            r"(?:,? (?:de |del )?((?:1\d|20)\d\d)\b)?",
            re.IGNORECASE,
        )
        suffix = reading.time_suffix
        separator = r"[:.]" if "Uhr" in suffix or "uur" in suffix else r"[:h]"
        dotted = rf"(?<![\w:.,])([01]?\d|2[0-4]){separator}([0-5]\d)"
        self._time = re.compile(
            rf"(?<![\w:.,])([01]?\d|2[0-4])[:h]([0-5]\d)(?::([0-5]\d))?{suffix}(?!\w|:\d)"
        )
        self._dotted_time = re.compile(rf"{dotted}()(?! ?%) ?(?:Uhr|uur|h)\b")
        symbols = sorted([*reading.currencies, *_CURRENCY_CODES], key=len, reverse=True)
        symbol = "|".join(map(re.escape, symbols))
        self._money_first = re.compile(
            rf"(?<!\w)({symbol}) ?({number})(?: ?({magnitudes})\b|(k|m|bn|b|K|M|B)\b)?"
        )
        self._money_last = re.compile(
            rf"(?<![\w.,])({number})(?: ?({magnitudes})(?= ))?() ?({symbol})(?!\w)"
        )
        units = "|".join(map(re.escape, sorted(reading.units, key=len, reverse=True)))
        self._fraction = re.compile(
            rf"(?<![\w/.,])(?:(\d+) )?(\d{{1,3}})/(\d{{1,3}})(?: ?({units}))?(?![\w²³/])"
        )
        self._unit = re.compile(rf"({number}) ?({units})(?![\w²³/])")
        self._percent = re.compile(rf"({number}) ?([%‰])")

    def __call__(self, source: Traced) -> Traced:
        signs = self._reading.signs
        source = source.sub(_ISO_DATE, lambda m: self._dated(m, m[3], m[2], m[1]))
        source = source.sub(_DATE, self._numeric_date)
        if self._english:
            source = source.sub(self._month_first, lambda m: self._named_date(m, m[2], m[1], m[3]))
            source = source.sub(_HALF_DAY, self._half_day)
        source = source.sub(self._day_first, lambda m: self._named_date(m, m[1], m[2], m[3]))
        source = source.sub(self._dotted_time, self._clock).sub(self._time, self._clock)
        source = source.sub(_VERSION, self._version)
        source = source.sub(_PHONE, self._phone).sub(_ALL_DAY, "24 7")
        source = source.sub(self._fraction, self._part)
        source = source.sub(_MINUS, f"{signs['-']} ").sub(_DIFFERENCE, f" {signs['-']} ")
        source = source.sub(_RANGE, f" {signs['to']} ")
        source = source.sub(self._money_first, self._prefixed_money)
        source = source.sub(self._money_last, lambda m: self._money(m[1], m[4], m[2]))
        source = source.sub(self._percent, self._percentage)
        source = source.sub(self._unit, self._measured)
        return self._ordinals(source)

    def _month_names(self) -> set[str]:
        names = set(self._reading.months)
        if self._english:
            names |= {name[:3] for name in names} | {"Sept"}
        return names

    def _numeric_date(self, match: re.Match[str]) -> str:
        first, separator, second, year = match[1], match[2], match[3], match[4]
        if len(year) == 2:
            if separator == "-":
                return match[0]
            year = f"{'20' if year < '50' else '19'}{year}"
        american = self._english and separator != "." and int(first) <= 12
        day, month = (second, first) if american else (first, second)
        return self._dated(match, day, month, year)

    def _dated(self, match: re.Match[str], day: str, month: str, year: str) -> str:
        """A date in words, or what was there if it is none."""
        if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
            return match[0]
        return self._date(match, int(day), int(month) - 1, year)

    def _named_date(self, match: re.Match[str], day: str, month: str, year: str | None) -> str:
        if not 1 <= int(day) <= 31:
            return match[0]
        known = self._month_numbers
        number = next(i for name, i in known.items() if name.startswith(month.lower()))
        return self._date(match, int(day), number, year)

    def _date(self, match: re.Match[str], day: int, month: int, year: str | None) -> str:
        words = self._numerals.day(day)
        if self._reading.number_language == "de":
            before = match.string[max(0, match.start() - 10) : match.start()]
            dative = _GERMAN_DATIVE.search(before)
            words += "n" if dative else "" if _GERMAN_NOMINATIVE.search(before) else "r"
        date = self._reading.date.format(day=words, month=self._reading.months[month])
        if year is None:
            return date
        return self._reading.dated_year.format(date=date, year=self._numerals.year(int(year)))

    def _clock(self, match: re.Match[str]) -> str:
        hours, minutes, seconds = int(match[1]), int(match[2]), match[3]
        words = self._time_of_day(hours, minutes)
        if seconds:
            second = self._numerals.counted(seconds.lstrip("0") or "0", self._reading.units["s"])
            words = f"{words} {self._reading.signs['and']} {second}"
        return words

    def _time_of_day(self, hours: int, minutes: int) -> str:
        template = self._reading.hour
        hour = self._numerals.number(str(hours), template)
        phrase = (template.one if hours == 1 else template.many).format(h=hour)
        if not minutes:
            return phrase
        minute = self._numerals.cardinal(minutes)
        if self._english and minutes < 10:
            minute = f"oh {minute}"
        return self._reading.minute.format(hour=phrase, h=hour, m=minute)

    def _half_day(self, match: re.Match[str]) -> str:
        hour = self._numerals.cardinal(int(match[1]))
        minutes = int(match[2] or 0)
        time = self._time_of_day(int(match[1]), minutes) if minutes else hour
        return f"{time} {match[3].lower()} m"

    def _version(self, match: re.Match[str]) -> str:
        """ "1.2.3" is no number, though "1.234.567" may be one."""
        if not self._english and _GROUPED.fullmatch(match[0]):
            return match[0]
        parts = map(self._numerals.number, match[0].split("."))
        return f" {self._reading.signs['dot' if not self._english else '.']} ".join(parts)

    def _phone(self, match: re.Match[str]) -> str:
        groups = [self._numerals.digits(group) for group in re.findall(r"\d+", match[0])]
        plus = f"{self._reading.signs['+']} " if match[0][0] == "+" else ""
        return plus + ", ".join(groups)

    def _part(self, match: re.Match[str]) -> str:
        numerals, signs = self._numerals, self._reading.signs
        whole, over, under, unit = match.groups()
        known = self._reading.fractions.get(f"{over}/{under}")
        part = known or f"{numerals.number(over)} {signs['over']} {numerals.number(under)}"
        words = f"{numerals.number(whole)} {signs['and']} {part}" if whole else part
        return f"{words} {self._reading.units[unit].one}" if unit else words

    def _prefixed_money(self, match: re.Match[str]) -> str:
        symbol, number, magnitude, suffix = match[1], match[2], match[3], match[4]
        if suffix:
            whole, fraction = self._numerals.split(number)
            value = float(f"{whole}.{fraction or 0}") * _SUFFIXES[suffix.lower()]
            number = str(round(value)) if value < 1e15 else number
        return self._money(number, symbol, magnitude)

    def _money(self, number: str, symbol: str, magnitude: str | None) -> str:
        symbol = _CURRENCY_CODES.get(symbol, symbol)
        currency, cent = self._reading.currencies[symbol], self._reading.cents.get(symbol)
        whole, fraction = self._numerals.split(number)
        if magnitude:
            short = self._reading.units.get(f"{magnitude.rstrip('.')}.")  # "Mio."
            if short:
                return f"{self._numerals.counted(number, short)} {currency.many}"
            return f"{self._numerals.number(number)} {magnitude}{self._of(magnitude, currency)}"
        if len(fraction) != 2 or cent is None:
            return self._numerals.counted(number, currency)
        if not fraction.strip("0"):
            return self._numerals.counted(whole, currency)
        cents = self._numerals.counted(fraction.lstrip("0"), cent)
        if not whole.strip("0"):
            return cents
        if not self._reading.cents_named:
            cents = self._numerals.number(fraction.lstrip("0"))
        return f"{self._numerals.counted(whole, currency)}{self._reading.cents_joint}{cents}"

    def _of(self, magnitude: str, currency: Noun) -> str:
        """What stands between "million" and a currency: " ", " de ", " d'"."""
        of = self._reading.signs["of"]
        if not of or magnitude in ("mil", "mille", "mila"):
            return f" {currency.many}"
        if self._reading.number_language == "fr" and currency.many[0] in "aeiouyé":
            return f" d'{currency.many}"
        return f" {of} {currency.many}"

    def _percentage(self, match: re.Match[str]) -> str:
        return f"{self._numerals.number(match[1])} {self._reading.signs[match[2]]}"

    def _measured(self, match: re.Match[str]) -> str:
        return self._numerals.counted(match[1], self._reading.units[match[2]])

    def _ordinals(self, source: Traced) -> Traced:
        ordinal = self._numerals.ordinal
        language = self._reading.number_language
        if language == "en":
            return source.sub(_ENGLISH_ORDINAL, lambda m: ordinal(int(m[1].replace(",", ""))))
        if language == "fr":
            return source.sub(_FRENCH_ORDINAL, self._french_ordinal)
        if language == "nl":
            return source.sub(_DUTCH_ORDINAL, lambda m: ordinal(int(m[1])))
        if language in ("es", "it", "pt_BR"):
            return source.sub(_MARKED_ORDINAL, self._marked_ordinal)
        return source

    def _french_ordinal(self, match: re.Match[str]) -> str:
        feminine = match[2].startswith(("r", "è")) and match[1] == "1"
        words = self._numerals.ordinal(int(match[1]), feminine)
        return f"{words}s" if match[2].endswith("s") else words

    def _marked_ordinal(self, match: re.Match[str]) -> str:
        words = self._numerals.ordinal(int(match[1]), feminine=match[2] == "ª")
        return words[:-1] if match[2] == "er" and words.endswith(("primero", "tercero")) else words
