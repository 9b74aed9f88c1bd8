"""The small bundle's CodecNetwork: DualCodec over log-mel features and the spectral decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tontaube.codec.base import Request, Window
from tontaube.codec.dualcodec import DualCodec
from tontaube.codec.logmel import LogMel
from tontaube.codec.spectral import STEPS, Filter, SpectralDecoder
from tontaube.codec.spectral_rows import NewFrames, SpectralRows, Tails
from tontaube.types import Samples

_BEHIND = 2  # frames of the filter before a window that its pulses and their interpolation touch


@dataclass(frozen=True, slots=True)
class SpectralState:
    """A stream so far; its size does not grow."""

    seen: int  # frames whose codes went through the network
    tails: Tails
    known: Filter | None  # from frame ``start`` on
    start: int
    phase: Tensor | None  # of the pulses, one frame before what comes next; None: 0


class SpectralCodec:
    """Implements ``codec.base.CodecNetwork``."""

    def __init__(self, network: DualCodec, streams: int) -> None:
        decoder = network.dac.decoder
        assert isinstance(decoder, SpectralDecoder)
        self._rows = SpectralRows(network)
        self._noise = decoder.loop
        # float64 to encode: a code is the nearest of many, and the network is small
        self._network = network.eval().double()
        self._decoder = decoder
        self._features = LogMel()
        self.sample_rate = decoder.sample_rate
        self.hop = decoder.hop
        self.streams = streams
        self.left_context = 0  # the state remembers it
        self.right_context = decoder.right_context

    @torch.inference_mode()
    def encode(self, samples: Samples) -> Tensor:
        """Mono float32 at 24 kHz → codes int64 [streams, ceil(n / 1920)]."""
        audio = torch.from_numpy(samples)[None]
        features = self._features(F.pad(audio, (0, -audio.shape[1] % self.hop))).double()
        return self._network.encode(features, features, self.streams)[0]

    def initial_state(self) -> SpectralState:
        """No frame was seen; the pulse train starts at phase 0."""
        return SpectralState(0, self._rows.start(), None, 0, None)

    @torch.inference_mode()
    def decode_windows(
        self, requests: Sequence[Request[SpectralState]]
    ) -> list[tuple[Tensor, SpectralState]]:
        """See ``CodecNetwork``; the network runs once for all of them."""
        new = [
            NewFrames(
                request.codes[:, request.state.seen - request.window.start :],
                request.state.tails,
                request.window.final,
            )
            for request in requests
        ]
        results = []
        for request, frames, (out, tails) in zip(requests, new, self._rows.run(new), strict=True):
            seen = request.state.seen + frames.codes.shape[1]
            results.append(self._render(request, self._decoder.read(out[None]), seen, tails))
        return results

    def _render(
        self, request: Request[SpectralState], new: Filter, seen: int, tails: Tails
    ) -> tuple[Tensor, SpectralState]:
        window, state = request.window, request.state
        known = new if state.known is None else state.known.then(new)
        at = Window(state.start, window.keep_from, window.keep_to, window.final)
        audio, phase = self._decoder.render(known, at, state.phase, self._noise)
        start = max(state.start, window.keep_to - _BEHIND)
        behind = known.steps(STEPS * (start - state.start), known.pitch.shape[1]).copy()
        return audio[0], SpectralState(seen, tails, behind, start, phase)
