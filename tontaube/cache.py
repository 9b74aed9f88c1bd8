"""Phrases that were spoken before: key → their audio, bounded in bytes, oldest use first out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from tontaube.types import AudioChunk, Continuation


@dataclass(frozen=True, slots=True)
class Phrase:
    """A stream as it was emitted, how many frames it took, and its last segment."""

    chunks: tuple[AudioChunk, ...]
    frames: int
    last: Continuation | None

    @property
    def bytes(self) -> int:
        """Of its samples."""
        return sum(chunk.samples.nbytes for chunk in self.chunks)


class PhraseCache:
    """Usable from any thread. ``hits`` and ``misses`` count the look-ups."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._size = 0
        self._phrases: OrderedDict[str, Phrase] = OrderedDict()
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    @property
    def most_bytes(self) -> int:
        """The largest phrase it keeps: an eighth of its capacity."""
        return self._capacity // 8

    def get(self, key: str) -> Phrase | None:
        """The phrase of this key, if it is here."""
        with self._lock:
            phrase = self._phrases.get(key)
            if phrase is None:
                self.misses += 1
                return None
            self._phrases.move_to_end(key)
            self.hits += 1
            return phrase

    def put(self, key: str, phrase: Phrase) -> None:
        """Keep a phrase, unless it is too large."""
        size = phrase.bytes
        if size > self.most_bytes:
            return
        with self._lock:
            known = self._phrases.pop(key, None)
            self._size += size - (known.bytes if known else 0)
            self._phrases[key] = phrase
            while self._size > self._capacity:
                _, oldest = self._phrases.popitem(last=False)
                self._size -= oldest.bytes
