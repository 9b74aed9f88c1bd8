"""A request's text → segments the model can take, each with its range in the request.

Mechanical rules of the report (sections 3.3 and 4.3) plus the cutting of text that still arrives;
what should be read how (numbers, markup) is ``normalize``'s business.
"""

from __future__ import annotations

import re

from tontaube.bundle import Segmentation
from tontaube.text.traced import Traced
from tontaube.types import Segment

ENDS = ".!?;:,"  # one priority class: there is no separate sentence and comma pass

_SURROGATE = re.compile("[\ud800-\udfff]")
_NEWLINE = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_BLANKS = re.compile("[ \t]+")
_BLANK_LINES = re.compile("\n(?: ?\n)+")
_END = re.compile(r"\Z")
_LAST_MARK = re.compile(f".*[{ENDS}]", re.DOTALL)
_LAST_BLANK = re.compile(r".*[ \t\n]", re.DOTALL)


def sanitize(text: str) -> str:
    """Collapse whitespace and close the text with a period unless it ends in one of ``.!?;:,``."""
    return _sanitize(Traced.of(text)).text


def _sanitize(source: Traced) -> Traced:
    source = source.sub(_SURROGATE, "").strip()  # half a surrogate pair has no encoding
    source = source.sub(_NEWLINE, "\n").sub(_BLANKS, " ").sub(_BLANK_LINES, "\n\n")
    if source.text and source.text[-1] not in ENDS:
        source = source.sub(_END, ".")
    return source


def split(source: str | Traced, segmentation: Segmentation) -> list[Segment]:
    """Sanitize and cut a text; a segment's range counts in the original of ``source``.

    No segment is longer than ``max_characters``. Empty text gives no segment.
    """
    whole = _sanitize(source if isinstance(source, Traced) else Traced.of(source))
    cap = segmentation.max_characters
    pieces: list[Traced] = []
    begin = piece_begin = 0
    while begin < len(whole.text):
        cut = begin + _cut(whole.text[begin : begin + cap], len(whole.text) - begin)
        joined = whole[piece_begin:cut].strip()
        if pieces and not _speakable(whole.text[begin:cut]) and len(joined.text) <= cap:
            pieces[-1] = joined  # a closing quote alone would be spoken as noise
        else:
            piece_begin = begin
            pieces.append(whole[begin:cut].strip())
        begin = cut
        while begin < len(whole.text) and whole.text[begin].isspace():
            begin += 1
    return [
        Segment(index, piece.text, *piece.range(), last=index == len(pieces) - 1)
        for index, piece in enumerate(pieces)
    ]


def _cut(window: str, length: int) -> int:
    """Where to cut a remainder of ``length`` characters that begins with ``window``, its first
    characters up to the cap."""
    if length <= len(window):
        return length
    for rule in (_LAST_MARK, _LAST_BLANK):
        match = rule.match(window)
        if match and _speakable(match[0]):
            return match.end()
    return len(window)


def _speakable(text: str) -> bool:
    return any(character.isalnum() for character in text)


def boundary_text(segment: Segment) -> str:
    """The segment as a stage reads it: a leading space unless it is the first, a newline after the
    last (section 3.3)."""
    return " " * (segment.index > 0) + segment.text + "\n" * segment.last


def lookahead(following: str, limit: int) -> str:
    """What CB0 sees of the following segment (its boundary text): at most ``limit`` characters,
    cut at the last space among them."""
    if len(following) <= limit:
        return following
    space = following.rfind(" ", 1, limit + 1)
    return following[: space if space > 0 else limit]


_CLAUSE = re.compile(rf"[{ENDS}…—]+[\"'”’»)\]]*\s")
_SENTENCE = re.compile(r"([.!?…]+)[\"'”’»)\]]*\s+(?=(\S))|\n\s*\n\s*(?=\S)")
_LAST_WORD = re.compile(r"[\w.]*\Z")
_ABBREVIATIONS = frozenset(
    "dr mr mrs ms prof st sr jr sra dra mme mlle bzw ca evtl ggf inkl nr str usw vgl vs etc fig "
    "no vol approx dept est inc ltd co corp gen col capt lt sgt rev hon sig dott ing avv art cap "
    "pag ej p.ej ej ud uds bijv blz mevr dhr enz bv nl o.a z.b d.h u.a e.g i.e a.m p.m".split()
)


class Segmenter:
    """Cuts text that still arrives (from a language model) into pieces that can be spoken.

    The first piece may end at a clause, so that speech starts early; later ones end at sentences.
    The pieces do not depend on how the text was cut before it came, and lose nothing but
    whitespace at their ends.
    """

    def __init__(self, max_characters: int = 350, first_characters: int = 16) -> None:
        """No piece is longer than ``max_characters``; the first has at least
        ``first_characters`` if it ends at a clause rather than a sentence."""
        self._cap = max_characters
        self._first = first_characters
        self._started = False
        self._buffer = ""

    def push(self, piece: str) -> list[str]:
        """Take more text; give what is complete now."""
        ready: list[str] = []
        for character in piece:  # one by one: decisions must not depend on the pieces
            if not self._buffer and character.isspace():
                continue
            self._buffer += character
            if character.isspace() or len(self._buffer) > self._cap or self._after_space():
                ready += self._take(self._complete())
        return ready

    def flush(self) -> list[str]:
        """Give the rest and start anew."""
        ready: list[str] = []
        while self._buffer:
            ready += self._take(self._complete() or len(self._buffer))
        self._started = False
        return ready

    def _after_space(self) -> bool:
        return self._buffer[-2:-1].isspace()

    def _take(self, cut: int) -> list[str]:
        piece, self._buffer = self._buffer[:cut].strip(), self._buffer[cut:].lstrip()
        if not piece:
            return []
        self._started = True
        return [piece]

    def _complete(self) -> int:
        """The length of the complete piece the buffer begins with; 0 if there is none yet."""
        text = self._buffer
        for match in _SENTENCE.finditer(text):
            if match.end() <= self._cap and _ends_sentence(text, match):
                return match.end()
        if not self._started:
            for match in _CLAUSE.finditer(text):
                if self._first <= match.end() <= self._cap and _ends_clause(text, match):
                    return match.end()
        if len(text) > self._cap:
            return _cut(text[: self._cap], len(text))
        return 0


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """Whether a full stop ends a sentence rather than an abbreviation, ordinal or initial."""
    if match[1] != ".":
        return _speakable(text[: match.end()])
    last = _LAST_WORD.search(text[: match.start()])
    word = last[0] if last else ""
    if word.isdigit():
        return len(word) > 2  # "3. Mai" goes on, "in 1999. Then" does not
    initial = len(word) == 1 and word != "I"
    abbreviated = initial or word.lower() in _ABBREVIATIONS
    return bool(word) and not abbreviated and not match[2].islower()


def _ends_clause(text: str, match: re.Match[str]) -> bool:
    """Like a sentence's end, but what follows is not known yet."""
    if match[0][0] != ".":
        return _speakable(text[: match.start()])
    last = _LAST_WORD.search(text[: match.start()])
    word = (last[0] if last else "").lower()
    return len(word) > 1 and not word.isdigit() and word not in _ABBREVIATIONS
