"""One stream's codes as they arrive → samples, the same ones at any chunking.

Codes are decoded in windows of bounded size, so the cost is linear and the memory constant in the
length of the stream. It knows a ``CodecNetwork`` and, for the report's join (section 5), a
``Resynthesis``; neither weights nor devices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch

from tontaube.codec.base import CodecNetwork, Request, Window
from tontaube.types import Codes, Samples


class Resynthesis(Protocol):
    """Audio → the same audio by a second, causal codec whose state is carried through the stream,
    so that what is heard has no seams (report, section 5)."""

    hop: int  # samples a latent frame; ``process`` takes whole ones

    def initial_state(self) -> Any:
        """The state of a stream before its first samples."""

    def process(self, samples: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        """Float32 [n * hop] → float32 [n * hop] and the state for the samples that follow."""


@dataclass(frozen=True, slots=True)
class Join:
    """How decoded windows become one stream.

    Without ``resynthesis`` (join ``exact``) a frame is emitted when all frames it depends on are
    there: the samples equal those of one decode of the whole. With it (join ``vibevoice``) only
    ``withheld_frames`` are awaited, and emission ends where both codecs have a frame boundary.
    """

    resynthesis: Resynthesis | None = None
    withheld_frames: int = 5
    window_frames: int = 375  # kept by one window at most: 30 s

    def __post_init__(self) -> None:
        if self.withheld_frames < 1 or self.window_frames < 1:
            raise ValueError("withheld_frames and window_frames must be at least 1")


class StreamDecoder:
    """Decodes one stream; its whole state is here, and its size does not grow."""

    def __init__(self, network: CodecNetwork, join: Join | None = None) -> None:
        join = join or Join()
        second = join.resynthesis
        self._network = network
        self._second = second
        self._quantum = 1 if second is None else math.lcm(network.hop, second.hop) // network.hop
        self._withheld = network.right_context
        if second is not None:
            self._withheld = min(self._withheld, join.withheld_frames)
        self._window_frames = max(1, join.window_frames // self._quantum) * self._quantum
        self._state = network.initial_state()
        self._second_state = None if second is None else second.initial_state()
        self._codes = torch.empty((network.streams, 0), dtype=torch.int64)  # from frame _start on
        self._start = 0
        self._kept = 0  # frames decoded and kept so far
        self._tail: torch.Tensor | None = None  # the last window's guess at what follows it
        self._finished = False
        self._asked: Window | None = None
        if self._withheld < network.right_context and self._state is not None:
            # A cross-fade decodes frames twice; a state that moves on does not allow that.
            raise ValueError(
                f"this network needs {network.right_context} withheld frames, got {self._withheld}"
            )

    @property
    def withheld_frames(self) -> int:
        """Frames that must follow a frame before it is decoded, unless the stream ends."""
        return self._withheld

    @property
    def quantum_frames(self) -> int:
        """Frames come out in multiples of this, until the stream ends."""
        return self._quantum

    @property
    def held_frames(self) -> int:
        """Frames of codes in memory: at most the context of one window after each push."""
        return int(self._codes.shape[1])

    def push(self, codes: Codes) -> Samples:
        """Codes int64 [streams, n], n >= 0, that follow those given before → the samples that are
        final by now (perhaps none)."""
        [samples] = decode_together([(self, codes)])
        return samples

    def finish(self) -> Samples:
        """The rest of the stream's samples; nothing may be pushed after it."""
        [samples] = decode_together([(self, None)])
        return samples

    def accept(self, codes: Codes | None) -> None:
        """Take codes to be decoded; None: the stream ends here. See ``decode_together``."""
        if self._finished:
            raise RuntimeError("the stream is finished")
        if codes is None:
            self._finished = True
            return
        if codes.ndim != 2 or codes.shape[0] != self._network.streams:
            raise ValueError(f"codes must be [{self._network.streams}, n], got {codes.shape}")
        new = torch.from_numpy(np.ascontiguousarray(codes, dtype=np.int64))
        self._codes = torch.cat((self._codes, new), dim=1)

    def request(self) -> Request[Any] | None:
        """The next window that can be decoded; ``take`` wants its result."""
        window = self._next_window(self._finished)
        if window is None:
            return None
        first, stop = window.start - self._start, window.keep_to - self._start
        codes = self._codes[:, first : stop + self._network.right_context]
        self._asked = window
        beyond = window.start + codes.shape[1] - window.keep_to
        if not window.final and beyond < self._network.right_context:
            window = replace(window, keep_to=window.keep_to + beyond)  # what follows, as a guess
        return Request(codes, window, self._state)

    def take(self, samples: torch.Tensor, state: Any) -> torch.Tensor:
        """The result of the request before → samples that are final."""
        window = self._asked
        assert window is not None
        kept = (window.keep_to - window.keep_from) * self._network.hop
        tail = None
        if self._state is None and not window.final:
            samples, tail = samples[:kept], samples[kept:]
        self._state = state
        self._kept = window.keep_to
        if self._tail is not None:
            samples = _fade(self._tail, samples, self._network.hop)
        self._tail = tail if tail is not None and len(tail) else None
        self._forget_before(window.keep_to - self._network.left_context)
        return samples if self._second is None else self._resynthesize(samples)

    @property
    def network(self) -> CodecNetwork:
        """What decodes its windows; streams of one network may be decoded together."""
        return self._network

    def _next_window(self, final: bool) -> Window | None:
        end = self._start + self._codes.shape[1]
        ready = end - self._kept
        if not final:
            ready -= self._withheld
            ready -= ready % self._quantum
        if ready <= 0:
            return None
        keep_to = self._kept + min(ready, self._window_frames)
        # The frames that only serve as context of the last window's predecessor join it instead:
        # so "final" always means that everything up to the end is kept.
        if final and end - keep_to <= self._network.right_context:
            keep_to = end
        start = max(0, self._kept - self._network.left_context)
        return Window(start, self._kept, keep_to, final=final and keep_to == end)

    def _resynthesize(self, samples: torch.Tensor) -> torch.Tensor:
        assert self._second is not None
        missing = -samples.shape[0] % self._second.hop  # only where the stream ends
        whole = torch.nn.functional.pad(samples, (0, missing))
        whole, self._second_state = self._second.process(whole, self._second_state)
        return whole[: samples.shape[0]]

    def _forget_before(self, frame: int) -> None:
        if frame > self._start:
            self._codes = self._codes[:, frame - self._start :].clone()
            self._start = frame


def decode_together(works: Sequence[tuple[StreamDecoder, Codes | None]]) -> list[Samples]:
    """``push`` (or, of None, ``finish``) of several streams of one network, a window of each in
    every pass. Company changes no stream's samples."""
    for stream, codes in works:
        stream.accept(codes)
    pieces: list[list[torch.Tensor]] = [[] for _ in works]
    while True:
        asked = [
            (stream, into, request)
            for (stream, _), into in zip(works, pieces, strict=True)
            if (request := stream.request()) is not None
        ]
        if not asked:
            return [_joined(samples) for samples in pieces]
        results = asked[0][0].network.decode_windows([request for *_, request in asked])
        for (stream, into, _), result in zip(asked, results, strict=True):
            into.append(stream.take(*result))


def _joined(pieces: list[torch.Tensor]) -> Samples:
    if not pieces:
        return np.zeros(0, dtype=np.float32)
    return np.ascontiguousarray(torch.cat(pieces).cpu().numpy(), dtype=np.float32)


def decode(network: CodecNetwork, codes: Codes, join: Join | None = None) -> Samples:
    """A whole utterance: codes int64 [streams, frames] → samples, as a stream would give them."""
    stream = StreamDecoder(network, join)
    return np.concatenate((stream.push(codes), stream.finish()))


def _fade(old: torch.Tensor, new: torch.Tensor, length: int) -> torch.Tensor:
    """``new``, led in from ``old``, which starts at the same sample: two decodes of the same frames
    with different right contexts differ a little, and a jump between them would be audible."""
    length = min(length, old.shape[0], new.shape[0])
    ramp = torch.linspace(0.0, 1.0, length, dtype=new.dtype, device=new.device)
    lead = old[:length] + ramp * (new[:length] - old[:length])
    return torch.cat((lead, new[length:]))
