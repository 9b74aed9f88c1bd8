"""A bundle's description → the memory that its codec works in, beside its weights.

Arithmetic over the largest tensors that are alive together, in float32, in which the codec computes
on every device. Weights are not counted: see ``footprint.codec_footprint``.
"""

from __future__ import annotations

import math

from tontaube.bundle import Description
from tontaube.codec.dac import ENCODER_WINDOW
from tontaube.codec.dac_codec import DacConfig
from tontaube.codec.reference import MAX_SECONDS

_FLOAT = 4  # bytes
# of one size, in a residual unit of convolutions: its input, two activations and what they are
# made of, two results
_ALIVE = 6
_LEFT, _RIGHT = 51, 27  # frames around a window (contract, section 8)

# w2v-BERT 2.0: positions a second, heads, channels of a head
_POSITIONS, _HEADS, _CHANNELS = 50, 16, 64
_SCORES = 3  # by content, by distance, and their softmax

_SMALL = 256 * 2**20  # the spectral codec: windows of a few frames, references of 60 s as spectra


def codec_working(description: Description) -> int:
    """Bytes, at most: for the longest reference, or the longest window."""
    if description.codec.kind == "spectral":
        return _SMALL
    config = DacConfig.model_validate(description.codec.config)
    return max(_features(), _encoder(config), _decoder(config, description))


def _features() -> int:
    """A layer's attention over the longest reference: scores of every pair of positions, and a
    vector for each pair, that says how far they are apart."""
    pairs = int(_POSITIONS * MAX_SECONDS) ** 2
    return pairs * (_SCORES * _HEADS + _CHANNELS) * _FLOAT


def _encoder(config: DacConfig) -> int:
    """Its first block, which works at the sample rate, over a window and what is around it."""
    samples = 2 * ENCODER_WINDOW * math.prod(config.encoder_rates)
    return samples * config.encoder_dim * _ALIVE * _FLOAT


def _decoder(config: DacConfig, description: Description) -> int:
    """Its last block, over the longest piece of a stream and what it is decoded with."""
    streaming = description.streaming
    longest = max(streaming.initial_frames, streaming.max_frames) + streaming.withheld_frames
    samples = (_LEFT + longest + _RIGHT) * math.prod(config.decoder_rates)
    channels = config.decoder_dim >> len(config.decoder_rates)
    return samples * channels * _ALIVE * _FLOAT
