"""Written text with markup, links and all of Unicode → plain characters, numbers still as digits.

It knows no numbers; the words of addresses come from the language's signs.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Mapping

from tontaube.text.traced import Traced

LETTERS = "A-Za-zÀ-ÖØ-öø-ÿĀ-ſ"  # what the seven languages are written with
MARKS = ".,!?;:'\"()\\-¿¡"

_KEPT = rf"\n -~{LETTERS}¿¡€£¥₹%‰§°²³ºª×÷±•→—"  # signs that still get words
_ODD = re.compile(rf"\r\n|[^\u0300-\u036f][\u0300-\u036f]+|[\u0370-\u03ffµ]+|[^{_KEPT}]")
_SAME = {
    character: plain
    for characters, plain in (
        ("“”„‟«»″", '"'),
        ("‘’‚‛′‹›´", "'"),
        ("‐‑−", "-"),
        ("‒–—―⸺⸻", "—"),
        ("▪◦‣●○■□►▸⁃", "•"),
        ("⇒➔➜⟶", "→"),
        ("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", "\n"),
        ("·", " "),
    )
    for character in characters
} | {"\r\n": "\n", "…": "...", "⁄": "/", "№": "No. ", "≈": "~", "℃": "°C", "℉": "°F", "™": ""}

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});")
_GROUP_SPACE = re.compile("(?<=\\d)[\u00a0\u2009\u202f'’](?=\\d{3}(?!\\d))")
_BLANKS = re.compile("[ \t]+")

_FENCED = re.compile(r"^ ?(`{3,}|~{3,})[^\n]*\n.*?(?:^ ?\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^ ?(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_LINK_TARGET = r"\([^()\s]{0,2000}(?: \"[^\"\n]{0,300}\")?\)"
_IMAGE = re.compile(rf"!\[([^\[\]\n]{{0,500}})\]{_LINK_TARGET}")
_LINK = re.compile(rf"\[([^\[\]\n]{{0,500}})\](?:{_LINK_TARGET}|\[[^\[\]\n]{{0,100}}\])")
_FOOTNOTE = re.compile(r"\[\^[^\]\n]{1,50}\]:?|^ ?\[[^\]\n]{1,50}\]: \S+.*$", re.MULTILINE)
_AUTOLINK = re.compile(r"<(?:mailto:)?([^<>\s]{1,500}[@/.][^<>\s]{1,500})>")
_BREAK = re.compile(r"<(?:br|p|/p|/div|/h\d|/li|/tr) ?/?>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>")
_RULE = re.compile(r"^[ |:+*_=-]+$", re.MULTILINE)  # rules, table rulers, underlines of headings
_QUOTE = re.compile(r"^ ?(?:> ?)+", re.MULTILINE)
_LINE_END = re.compile(r"$", re.MULTILINE)
_ITEM = re.compile(r" ?(?:#{1,6} |[-*+•—] |\d{1,3}[.)] )")
_OPEN = re.compile(r"[^\s.!?:;,*_)\"'][*_)\"' #]{0,8}\Z")  # a line's end without a mark
_BULLET = re.compile(r"^ ?(?:#{1,6} |[-*+•—]+ (?:\[[ xX]\] )?|—+)", re.MULTILINE)
_NUMBERED = re.compile(r"^( ?\d{1,3})\)(?= )", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)|`+|~~|\*{2,}|(?<!\s)\*|\*(?!\s)")
_CELL_EDGE = re.compile(r"^ ?\| ?| ?\| ?$", re.MULTILINE)
_CELL = re.compile(r" ?\|[ |]*")
_SNAKE = re.compile(r"(?<=\w)_+(?=\w)")

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_ADDRESS_END = r"[^\s<>\"'()\[\]{}|,;]"
_TOP_LEVEL = "com|org|net|edu|gov|info|io|ai|dev|app|eu|de|at|ch|es|fr|it|nl|be|pt|br|uk|us|tv"
_ADDRESS = re.compile(
    rf"\b(?:(?:https?|ftp)://|www\.){_ADDRESS_END}+"
    rf"|(?<![\w@./-])(?:[a-z0-9-]{{1,63}}\.){{1,5}}(?:{_TOP_LEVEL})\b(?:/{_ADDRESS_END}*)?(?!\.?\w)",
)
_SCHEME = re.compile(r"\A(?:(?:https?|ftp)://)?(?:www\.)?")
_LONGEST_PATH = 40  # characters; of a longer address only the host is read


def plain(source: Traced, signs: Mapping[str, str]) -> Traced:
    """Without markup, in the characters of the seven languages, addresses in words."""
    source = source.sub(_ENTITY, lambda match: html.unescape(match[0]))
    source = source.sub(_GROUP_SPACE, " ").sub(_ODD, _plain_characters).sub(_BLANKS, " ")
    source = _without_links(source)
    source = source.sub(_EMAIL, lambda match: _spelled(match[0], signs))
    source = source.sub(_ADDRESS, lambda match: _address(match[0], signs))
    return _without_markdown(source)


def _without_links(source: Traced) -> Traced:
    """Without code, links, tags: what holds text that is not to be read."""
    spoken = source.sub(_FENCED, "\n")  # nobody wants to hear code, unless there is nothing else
    source = spoken if any(map(str.isalnum, spoken.text)) else source.sub(_FENCE, "")
    source = source.sub(_FOOTNOTE, "").sub(_IMAGE, _inside).sub(_LINK, _inside)
    return source.sub(_AUTOLINK, _inside).sub(_BREAK, "\n").sub(_TAG, "")


def _without_markdown(source: Traced) -> Traced:
    source = source.sub(_RULE, "").sub(_QUOTE, "").sub(_LINE_END, _close_item)
    source = source.sub(_BULLET, "").sub(_NUMBERED, lambda match: f"{match[1]}.")
    source = source.sub(_EMPHASIS, "").sub(_CELL_EDGE, "").sub(_CELL, ", ")
    return source.sub(_SNAKE, " ")


def _inside(match: re.Match[str]) -> str:
    return match[1]


def _close_item(match: re.Match[str]) -> str:
    """A full stop for a heading or list item that has none: it is a sentence of its own."""
    text, end = match.string, match.start()
    line = text[text.rfind("\n", 0, end) + 1 : end]
    return "." if _ITEM.match(line) and _OPEN.search(line[-9:]) else ""


def _plain_characters(match: re.Match[str]) -> str:
    found = match[0]
    if found in _SAME:
        return _SAME[found]
    if "\u0370" <= found[0] <= "\u03ff" or found[0] == "µ":
        return _greek(found)
    composed = unicodedata.normalize("NFKC", found)
    if "⁄" in composed:  # "1½" is not 11/2
        return f" {composed.replace('⁄', '/')}"
    return "".join(map(_plain_character, composed))


def _plain_character(character: str) -> str:
    if re.match(f"[{_KEPT}]", character):
        return character
    if character in _SAME:
        return _SAME[character]
    kind = unicodedata.category(character)
    if kind == "Nd":
        return str(unicodedata.decimal(character))
    if kind[0] == "L":
        base = unicodedata.normalize("NFKD", character)[0]
        return base if re.match(f"[{LETTERS}]", base) else " "
    return "" if kind[0] in "MC" else " "


def _greek(run: str) -> str:
    """A single Greek letter is read by its name; a Greek word is beyond the seven languages."""
    words = unicodedata.name(run[0], "").split()
    return f" {words[3].lower()} " if len(run) == 1 and len(words) > 3 else " "


def _address(found: str, signs: Mapping[str, str]) -> str:
    address = found.rstrip(".!?:-*_")
    tail = found[len(address) :]
    address = _SCHEME.sub("", address)
    address = re.split(r"[?#]", address)[0].rstrip("/")
    if len(address) > _LONGEST_PATH:
        address = address.partition("/")[0]
    return _spelled(address, signs) + tail


def _spelled(address: str, signs: Mapping[str, str]) -> str:
    words = {".": "dot", "-": "dash", "_": "_", "/": "/", "@": "@", "+": "+"}

    def spell(match: re.Match[str]) -> str:
        return f" {signs[words[match[0]]]} " if match[0] in words else " "

    return re.sub(rf"[^{LETTERS}0-9]", spell, address).strip()
