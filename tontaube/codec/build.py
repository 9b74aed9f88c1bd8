"""A bundle's codec description → the network, with its weights checked and loaded."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from tontaube.codec.dualcodec import AcousticParts, DualCodec, Semantic
from tontaube.codec.layers import ResidualVectorQuantizer
from tontaube.codec.spectral import SpectralDecoder, SpectralEncoder


class SpectralConfig(BaseModel):
    """Sizes of the small bundle's codec."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    features: int = 640
    latent: int = 192
    semantic_dim: int = 192
    semantic_hidden: int = 384
    semantic_encoder_blocks: int = 4
    semantic_decoder_blocks: int = 2
    semantic_codes: int = 4096
    acoustic_codes: int = 512
    acoustic_streams: int = 3
    encoder_dim: int = 256
    encoder_hidden: int = 512
    decoder_dim: int = 256
    decoder_hidden: int = 768
    decoder_blocks: int = 5


def build_spectral(config: SpectralConfig) -> DualCodec:
    """The small bundle's DualCodec with fresh weights."""
    c = config
    semantic = Semantic(
        features=c.features,
        dim=c.semantic_dim,
        hidden=c.semantic_hidden,
        encoder_blocks=c.semantic_encoder_blocks,
        decoder_blocks=c.semantic_decoder_blocks,
        kernel=3,
        encoder_right=1,
        scale=0.1,
        codes=c.semantic_codes,
    )
    acoustic = AcousticParts(
        SpectralEncoder(c.features, c.encoder_dim, c.encoder_hidden, c.latent),
        ResidualVectorQuantizer(c.latent, [c.acoustic_codes] * c.acoustic_streams),
        SpectralDecoder(c.latent, c.decoder_dim, c.decoder_hidden, c.decoder_blocks),
    )
    return DualCodec(semantic, c.latent, acoustic)
