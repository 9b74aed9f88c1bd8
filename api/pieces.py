"""Text as somebody writes it → pieces worth speaking; nothing between them is lost."""

from __future__ import annotations

from collections.abc import Sequence

from tontaube.text.segments import Segmenter


class Pieces:
    """A ``Segmenter`` whose pieces keep their white space: joined, they are the text again, so that
    a character's place in them is its place in the text."""

    def __init__(self, max_characters: int) -> None:
        self._segmenter = Segmenter(max_characters)
        self._rest = ""  # of the text, not given yet

    @property
    def waiting(self) -> bool:
        """Whether there is text that is not given yet."""
        return bool(self._rest.strip())

    def push(self, text: str) -> list[str]:
        """Take more text; give the pieces that are complete."""
        self._rest += text
        return self._cut(self._segmenter.push(text))

    def flush(self) -> list[str]:
        """Give all that is left, complete or not."""
        return self._cut(self._segmenter.flush())

    def _cut(self, pieces: Sequence[str]) -> list[str]:
        given = []
        for piece in pieces:
            end = self._rest.index(piece) + len(piece)
            given.append(self._rest[:end])
            self._rest = self._rest[end:]
        return given
