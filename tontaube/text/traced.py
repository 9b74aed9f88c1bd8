"""A text that remembers which characters of the original each of its characters came from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traced:
    """``text[i]`` stands for the original's characters ``starts[i]`` up to ``ends[i]``.

    Both are non-decreasing; a character that was added has an empty range.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Traced:
        """The original itself."""
        return cls(text, tuple(range(len(text))), tuple(range(1, len(text) + 1)))

    def __getitem__(self, part: slice) -> Traced:
        return Traced(self.text[part], self.starts[part], self.ends[part])

    def sub(self, pattern: re.Pattern[str], new: str | Callable[[re.Match[str]], str]) -> Traced:
        """Like ``pattern.sub(new, text)``; ``new`` is literal, and what it puts in a match's place
        stands for the whole match. A match given back unchanged keeps its characters' ranges."""
        texts, starts, ends, done = [], list[int](), list[int](), 0
        for match in pattern.finditer(self.text):
            put = new if isinstance(new, str) else new(match)
            first, last = match.span()
            if put == match[0]:
                continue
            texts += [self.text[done:first], put]
            starts += self.starts[done:first]
            ends += self.ends[done:first]
            if first < last:
                start, end = self.starts[first], self.ends[last - 1]
            else:  # an insertion: an empty range just before what follows
                start = end = self.ends[first - 1] if first else 0
            starts += [start] * len(put)
            ends += [end] * len(put)
            done = last
        if not texts:
            return self
        texts.append(self.text[done:])
        starts += self.starts[done:]
        ends += self.ends[done:]
        return Traced("".join(texts), tuple(starts), tuple(ends))

    def strip(self) -> Traced:
        """Without surrounding whitespace."""
        text = self.text
        return self[len(text) - len(text.lstrip()) : len(text.rstrip())]

    def range(self) -> tuple[int, int]:
        """The range of the original this text came from; (0, 0) for an empty one."""
        return (self.starts[0], self.ends[-1]) if self.text else (0, 0)
