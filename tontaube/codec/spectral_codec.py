"""The small bundle's CodecNetwork: DualCodec over log-mel features and the spectral decoder."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tontaube.codec.base import Window
from tontaube.codec.dualcodec import DualCodec
from tontaube.codec.logmel import LogMel
from tontaube.codec.spectral import SpectralDecoder
from tontaube.types import Samples


class SpectralCodec:
    """Implements ``codec.base.CodecNetwork``; its stream state is the pulse phase."""

    def __init__(self, network: DualCodec, streams: int) -> None:
        decoder = network.dac.decoder
        assert isinstance(decoder, SpectralDecoder)
        # float64: the pulse phase adds up pitch over the whole utterance, and in float32 the
        # rounding of differently shaped windows would let it drift; the network is small
        self._network = network.eval().double()
        self._decoder = decoder
        self._features = LogMel()
        self.sample_rate = decoder.sample_rate
        self.hop = decoder.hop
        self.streams = streams
        self.left_context = decoder.left_context + network.semantic_left_context
        self.right_context = decoder.right_context

    @torch.inference_mode()
    def encode(self, samples: Samples) -> Tensor:
        """Mono float32 at 24 kHz → codes int64 [streams, ceil(n / 1920)]."""
        audio = torch.from_numpy(samples)[None]
        features = self._features(F.pad(audio, (0, -audio.shape[1] % self.hop))).double()
        return self._network.encode(features, features, self.streams)[0]

    def initial_state(self) -> Tensor | None:
        """The first window starts the pulse train at phase 0."""
        return None

    @torch.inference_mode()
    def decode_window(
        self, codes: Tensor, window: Window, state: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Codes int64 [streams, T] → kept samples float32 [n] and the phase to go on with."""
        audio, phase = self._decoder.decode_window(
            self._network.latents(codes[None]), window, state
        )
        return audio[0], phase
