"""The released CodecNetwork: DualCodec over DAC's encoder and decoder and w2v-BERT features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch
import torch.nn.functional as F
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from tontaube.codec.base import Request
from tontaube.codec.dac import DacDecoder, DacEncoder, fold_weight_norm
from tontaube.codec.dualcodec import AcousticParts, DualCodec, Semantic
from tontaube.codec.layers import ResidualVectorQuantizer
from tontaube.codec.tensors import load_tensors
from tontaube.errors import Unavailable
from tontaube.types import Samples


class DacConfig(BaseModel):
    """Sizes; the defaults are those of DualCodec ``12hz_v1`` (contract, section 8)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample_rate: int = 24_000
    encoder_dim: int = 32
    encoder_rates: tuple[int, ...] = (4, 5, 6, 8, 2)
    decoder_dim: int = 1536
    decoder_rates: tuple[int, ...] = (2, 8, 6, 5, 4)
    latent: int = 1024
    acoustic_streams: int = 7
    acoustic_codes: int = 4096
    semantic_codes: int = 16_384
    code_dim: int = 8
    features: int = 1024
    semantic_dim: int = 768
    semantic_hidden: int = 2048
    semantic_blocks: int = 4  # each way


class Features(Protocol):
    """Content features of a recording, one a codec frame."""

    def __call__(self, samples: Samples) -> Tensor:
        """Mono float32 at the codec's rate → [1, features, T]."""


def build_dac(config: DacConfig) -> DualCodec:
    """DualCodec with fresh weights and the released checkpoint's names."""
    c = config
    semantic = Semantic(
        features=c.features,
        dim=c.semantic_dim,
        hidden=c.semantic_hidden,
        encoder_blocks=c.semantic_blocks,
        decoder_blocks=c.semantic_blocks,
        codes=c.semantic_codes,
        code_dim=c.code_dim,
    )
    acoustic = AcousticParts(
        DacEncoder(c.encoder_dim, c.encoder_rates, c.latent),
        ResidualVectorQuantizer(c.latent, [c.acoustic_codes] * c.acoustic_streams, c.code_dim),
        DacDecoder(c.latent, c.decoder_dim, c.decoder_rates, c.sample_rate),
    )
    return DualCodec(semantic, c.latent, acoustic)


class DacCodec:
    """Implements ``codec.base.CodecNetwork``; it has no stream state.

    ``features`` are needed to encode only. Give it a network it may change: weight norm is folded.
    """

    def __init__(
        self,
        network: DualCodec,
        streams: int,
        *,
        features: Features | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        decoder = network.dac.decoder
        assert isinstance(decoder, DacDecoder)
        fold_weight_norm(network)
        self._network = network.eval().requires_grad_(False).to(device)
        self._decoder = decoder
        self._features = features
        self._device = torch.device(device)
        self.sample_rate = decoder.sample_rate
        self.hop = decoder.hop
        self.streams = streams
        self.left_context = decoder.left_context + network.semantic_left_context
        self.right_context = decoder.right_context

    @classmethod
    def load(
        cls,
        weights: Path,
        config: DacConfig,
        streams: int,
        *,
        features: Features | None = None,
        device: torch.device | str = "cpu",
    ) -> DacCodec:
        """Read the released safetensors file. Raises BundleError naming tensors that do not fit."""
        with torch.device("meta"):
            network = build_dac(config)
        load_tensors(network, weights)
        return cls(network, streams, features=features, device=device)

    @torch.inference_mode()
    def encode(self, samples: Samples) -> Tensor:
        """Mono float32 at 24 kHz → codes int64 [streams, frames], as many frames as the features
        have. Raises Unavailable without a feature extractor."""
        if self._features is None:
            raise Unavailable("encoding a reference needs the bundle's w2v-BERT features")
        features = self._features(samples).to(self._device)
        audio = torch.from_numpy(samples).to(self._device)
        audio = F.pad(audio, (0, -audio.shape[0] % self.hop))
        return self._network.encode(features, audio[None, None], self.streams)[0]

    def initial_state(self) -> None:
        """There is none."""
        return None

    @torch.inference_mode()
    def decode_windows(self, requests: Sequence[Request[None]]) -> list[tuple[Tensor, None]]:
        """See ``CodecNetwork``; the last 4 of an utterance's 1920·T samples do not exist."""
        return [self._decode(request) for request in requests]

    def _decode(self, request: Request[None]) -> tuple[Tensor, None]:
        latents = self._network.latents(request.codes[None].to(self._device))
        audio, state = self._decoder.decode_window(latents, request.window, request.state)
        return audio[0].float(), state
