"""Decoded samples → audio chunks: each segment's share, leading silence left out, speed changed.

It also guesses how much of the text has been spoken by the end of each chunk.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tontaube.audio.silence import LeadingSilence
from tontaube.audio.tempo import Tempo
from tontaube.types import AudioChunk, Samples, Segment


@dataclass(slots=True)
class _Share:
    """A segment's place in the decoded samples."""

    segment: Segment
    begin: int
    length: int  # exact once the segment is complete, a guess before


class Chunker:
    """One stream's way from the decoder to its reader."""

    def __init__(self, sample_rate: int, *, speed: float, trim: bool) -> None:
        self._rate = sample_rate
        self._speed = speed
        self._trim = LeadingSilence(sample_rate, enabled=trim)
        self._tempo = Tempo(speed, sample_rate)
        self._shares: deque[_Share] = deque()
        self._decoded = 0
        self._emitted = 0

    def seconds(self, decoded: int) -> float:
        """Where in the emitted audio the decoded sample ``decoded`` is heard."""
        return max(0, decoded - self._trim.trimmed) / self._rate / self._speed

    def expect(self, segment: Segment, begin: int, length: int) -> None:
        """Decoded samples from ``begin`` on belong to ``segment``, about ``length`` of them.
        Called again as more is known."""
        share = _Share(segment, begin, max(1, length))
        if self._shares and self._shares[-1].segment.index == segment.index:
            self._shares[-1] = share
        else:
            self._shares.append(share)

    def push(self, samples: Samples) -> list[AudioChunk]:
        """The next decoded samples; ``expect`` must have been told whose they are."""
        chunks: list[AudioChunk] = []
        while len(samples):
            share = self._shares[0]
            take = len(samples)
            if len(self._shares) > 1:  # the segment is over where the next begins
                take = min(take, self._shares[1].begin - self._decoded)
            part, samples = samples[:take], samples[take:]
            self._decoded += take
            chunks += self._chunk(self._tempo.push(self._trim.push(part)), share)
            if len(self._shares) > 1 and self._decoded >= self._shares[1].begin:
                self._shares.popleft()
        return chunks

    def finish(self) -> list[AudioChunk]:
        """What trimming and tempo still held."""
        if not self._shares:
            return []
        share = self._shares[-1]
        held = self._tempo.push(self._trim.finish())
        return self._chunk(held, share) + self._chunk(self._tempo.finish(), share, last=True)

    def _chunk(self, samples: Samples, share: _Share, last: bool = False) -> list[AudioChunk]:
        if not len(samples):
            return []
        start = self._emitted
        self._emitted += len(samples)
        segment = share.segment
        done = 1.0 if last else min(1.0, (self._decoded - share.begin) / share.length)
        text_end = segment.start + round(done * (segment.end - segment.start))
        return [AudioChunk(samples, start, segment, text_end)]
