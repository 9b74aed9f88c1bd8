"""Samples of a stream → how many characters of its text they have spoken."""

from __future__ import annotations

from bisect import bisect_left

from tontaube.types import AudioChunk


class SpokenMap:
    """Remembers how far the text was at the end of each piece; between two of them time and
    characters are taken as proportional, which is all that is known."""

    def __init__(self) -> None:
        self._samples = [0]
        self._characters = [0]

    def add(self, chunk: AudioChunk) -> None:
        """Note a piece that was sent."""
        self._samples.append(chunk.start + len(chunk.samples))
        self._characters.append(max(chunk.text_end, self._characters[-1]))

    def until(self, samples: int | None) -> dict[str, int]:
        """``{"characters", "samples"}`` heard after that many samples; None: after all sent."""
        heard = self._samples[-1] if samples is None else min(samples, self._samples[-1])
        after = bisect_left(self._samples, heard)
        if after == 0:
            return {"characters": 0, "samples": 0}
        begin, end = self._samples[after - 1], self._samples[after]
        done, following = self._characters[after - 1], self._characters[after]
        share = (heard - begin) / max(1, end - begin)
        return {"characters": done + round(share * (following - done)), "samples": heard}
