"""DAC's networks: the released names and shapes, their exact reach, windows equal to the whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tontaube.codec.dac import DacDecoder, DacEncoder, fold_weight_norm
from tontaube.codec.dac_codec import DacCodec, DacConfig, build_dac
from tontaube.codec.decoder import Join, StreamDecoder
from tontaube.codec.dualcodec import DualCodec
from tontaube.errors import BundleError, Unavailable
from tontaube.types import Samples

RELEASED = DacConfig()
SMALL = DacConfig(
    encoder_dim=2,
    decoder_dim=32,
    latent=16,
    acoustic_streams=3,
    acoustic_codes=64,
    semantic_codes=128,
    features=12,
    semantic_dim=16,
    semantic_hidden=24,
)


def network() -> DualCodec:
    """A small codec at the released rates; its output has the level of speech."""
    torch.manual_seed(0)
    network = build_dac(SMALL)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("weight_g"):
                parameter.mul_(torch.empty_like(parameter).uniform_(0.8, 1.6))
        latents = network.latents(torch.zeros(1, 4, 20, dtype=torch.long).random_(64))
        network.dac.decoder.model[-2].weight_g.mul_(0.1 / network.dac.decoder(latents).std())
    return network


def features(samples: Samples) -> Tensor:
    """A stand-in for w2v-BERT: one frame fewer than the audio has, as its windows give."""
    frames = samples.size // 1_920
    generator = torch.Generator().manual_seed(frames)
    return torch.randn(1, SMALL.features, frames, generator=generator)


@pytest.fixture(scope="module")
def codec() -> DacCodec:
    return DacCodec(network(), streams=4, features=features)


def codes_of(frames: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.random.default_rng(frames).integers(0, 64, (4, frames))


def test_names_and_shapes_are_those_of_the_released_checkpoint() -> None:
    with torch.device("meta"):
        tensors = build_dac(RELEASED).state_dict()
    assert len(tensors) == 420
    assert sum(tensor.numel() for tensor in tensors.values()) == 84_014_578
    expected = {
        "convnext_encoder.0.weight_g": (768, 1, 1),
        "convnext_encoder.1.dwconv.weight": (768, 1, 7),
        "convnext_decoder.4.weight_v": (1024, 768, 1),
        "semantic_vq.quantizers.0.codebook.weight": (16_384, 8),
        "dac.quantizer.quantizers.6.in_proj.weight_v": (8, 1024, 1),
        "dac.encoder.block.1.block.4.weight_v": (64, 32, 8),
        "dac.decoder.model.1.block.1.weight_g": (1536, 1, 1),
        "dac.decoder.model.1.block.1.weight_v": (1536, 768, 4),
        "dac.decoder.model.6.alpha": (1, 48, 1),
        "dac.decoder.model.7.weight_v": (1, 48, 7),
    }
    assert {name: tuple(tensors[name].shape) for name in expected} == expected


def test_the_context_is_the_reach_measured_by_gradient() -> None:
    decoder = DacDecoder(2, 32, RELEASED.decoder_rates).double()
    latents = torch.randn(1, 2, 70, dtype=torch.double, requires_grad=True)
    audio = decoder(latents)
    assert audio.shape == (1, 70 * 1_920 - 4)
    frame = audio[0, 35 * 1_920 : 36 * 1_920].square().sum()
    touched = torch.autograd.grad(frame, latents)[0].abs().sum((0, 1)).nonzero().flatten()
    reach = (35 - int(touched.min()), int(touched.max()) - 35)
    assert (decoder.left_context, decoder.right_context) == reach == (27, 27)


def test_codec_context_covers_the_semantic_branch(codec: DacCodec) -> None:
    assert (codec.left_context, codec.right_context) == (24 + 27, 27)
    assert (codec.sample_rate, codec.hop) == (24_000, 1_920)


@pytest.mark.parametrize("frames", [1, 101, 130])
def test_the_encoder_in_windows_equals_the_whole(frames: int) -> None:
    torch.manual_seed(0)
    encoder = DacEncoder(2, RELEASED.encoder_rates, 4)
    audio = torch.randn(1, 1, frames * 1_920)
    with torch.no_grad():
        windowed, whole = encoder(audio), encoder.block(audio)
    assert windowed.shape == whole.shape == (1, 4, frames)
    assert (windowed - whole).abs().max() < 1e-5


def test_folded_weights_give_the_same() -> None:
    plain, folded = network(), network()
    fold_weight_norm(folded)
    assert not any(name.endswith(("weight_g", "weight_v")) for name in folded.state_dict())
    codes = torch.from_numpy(codes_of(12))[None]
    with torch.no_grad():
        expected = plain.dac.decoder(plain.latents(codes))
        assert (folded.dac.decoder(folded.latents(codes)) - expected).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("frames", "cuts", "window_frames"),
    [(1, [], 375), (27, [1, 26], 375), (60, [40, 5, 5], 375), (90, [], 20), (79, [7] * 11, 50)],
)
def test_any_chunking_equals_the_whole(
    codec: DacCodec, frames: int, cuts: list[int], window_frames: int
) -> None:
    plain, codes = network(), codes_of(frames)
    with torch.no_grad():
        expected = plain.dac.decoder(plain.latents(torch.from_numpy(codes)[None]))[0].numpy()
    stream = StreamDecoder(codec, Join(window_frames=window_frames))
    pieces, at = [], 0
    for cut in [*cuts, frames]:
        pieces.append(stream.push(codes[:, at : at + cut]))
        at = min(frames, at + cut)
    samples = np.concatenate([*pieces, stream.finish()])
    assert samples.shape == expected.shape == (frames * 1_920 - 4,)
    assert np.abs(samples - expected).max() < 1e-5


@pytest.mark.parametrize("samples", [24_000, 24_001, 48_000 - 7])
def test_encodes_as_many_frames_as_the_features_have(codec: DacCodec, samples: int) -> None:
    audio = np.random.default_rng(0).standard_normal(samples).astype(np.float32)
    codes = codec.encode(audio)
    assert codes.dtype == torch.int64 and codes.shape == (4, samples // 1_920)
    assert 0 <= int(codes.min()) and int(codes[1:].max()) < 64


def test_encoding_needs_features() -> None:
    with pytest.raises(Unavailable, match="w2v-BERT"):
        DacCodec(network(), streams=4).encode(np.zeros(24_000, np.float32))


def test_loads_the_checkpoint_and_names_what_does_not_fit(codec: DacCodec, tmp_path: Path) -> None:
    path = tmp_path / "dualcodec.safetensors"
    with pytest.raises(BundleError, match="neither"):
        DacCodec.load(path, SMALL, 4)
    save_file(network().state_dict(), path)
    loaded, codes = DacCodec.load(path, SMALL, 4), codes_of(9)
    streams = [StreamDecoder(each) for each in (loaded, codec)]
    ours, theirs = (np.concatenate((s.push(codes), s.finish())) for s in streams)
    assert np.array_equal(ours, theirs)
    with pytest.raises(BundleError, match=r"misshapen tensors: .*is \[32, 16, 7\]"):
        DacCodec.load(path, SMALL.model_copy(update={"decoder_dim": 64}), 4)
    tensors = load_file(path)
    tensors["extra"] = tensors.pop("dac.decoder.model.0.bias")
    save_file(tensors, path)
    with pytest.raises(BundleError, match=r"missing tensors: dac\.decoder\.model\.0\.bias"):
        DacCodec.load(path, SMALL, 4)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(BundleError, match="damaged"):
        DacCodec.load(path, SMALL, 4)
