"""DualCodec: semantic VQ over content features, acoustic RVQ over what it leaves, one decoder.

Written once over an acoustic encoder and a decoder that are handed in; names of the parts are those
of the released checkpoint (contract, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tontaube.codec.layers import ConvNeXtBlock, ResidualVectorQuantizer, WeightNormConv1d


@dataclass(frozen=True, slots=True)
class Semantic:
    """Sizes of the semantic branch."""

    features: int = 1024
    dim: int = 768
    hidden: int = 2048
    encoder_blocks: int = 4
    decoder_blocks: int = 4
    kernel: int = 7
    encoder_right: int = 0  # future frames each encoder block sees
    scale: float = 0.0
    codes: int = 16_384
    code_dim: int = 8


class AcousticParts(nn.Module):
    """The acoustic half: encoder, residual quantizer, decoder."""

    def __init__(
        self, encoder: nn.Module, quantizer: ResidualVectorQuantizer, decoder: nn.Module
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.quantizer = quantizer
        self.decoder = decoder


class DualCodec(nn.Module):
    """Features and audio → codes; codes → latents. What turns latents into audio is ``decoder``."""

    def __init__(self, semantic: Semantic, latent: int, acoustic: AcousticParts) -> None:
        super().__init__()
        s = semantic
        self.convnext_encoder = nn.Sequential(
            WeightNormConv1d(s.features, s.dim),
            *(
                ConvNeXtBlock(
                    s.dim, s.hidden, kernel=s.kernel, right=s.encoder_right, scale=s.scale
                )
                for _ in range(s.encoder_blocks)
            ),
        )
        self.semantic_vq = ResidualVectorQuantizer(s.dim, [s.codes], s.code_dim)
        self.convnext_decoder = nn.Sequential(
            *(
                ConvNeXtBlock(s.dim, s.hidden, kernel=s.kernel, right=0, scale=s.scale)
                for _ in range(s.decoder_blocks)
            ),
            WeightNormConv1d(s.dim, latent),
        )
        self.dac = acoustic
        self.semantic_left_context = s.decoder_blocks * (s.kernel - 1)

    def encode(self, features: Tensor, acoustic_input: Tensor, streams: int) -> Tensor:
        """Content features [B, D, T] and the acoustic encoder's input → codes [B, streams, T]."""
        c0 = self.semantic_vq.encode(self.convnext_encoder(features))
        return c0 if streams == 1 else self.encode_rest(c0, acoustic_input, streams)

    def encode_rest(self, c0: Tensor, acoustic_input: Tensor, streams: int) -> Tensor:
        """Semantic codes [B, 1, T] and the acoustic encoder's input → codes [B, streams, T]."""
        rest = self.dac.encoder(acoustic_input)[..., : c0.shape[-1]] - self.semantic_latents(c0)
        return torch.cat((c0, self.dac.quantizer.encode(rest, streams - 1)), 1)

    def semantic_latents(self, c0: Tensor) -> Tensor:
        """Semantic codes int64 [B, 1, T] → latents [B, latent, T]."""
        out: Tensor = self.convnext_decoder(self.semantic_vq.decode(c0))
        return out

    def latents(self, codes: Tensor) -> Tensor:
        """Codes int64 [B, n, T], n = 1 … all → the decoder's input [B, latent, T]."""
        z = self.semantic_latents(codes[:, :1])
        return z if codes.shape[1] == 1 else z + self.dac.quantizer.decode(codes[:, 1:])
