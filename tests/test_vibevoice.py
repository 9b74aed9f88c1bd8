"""VibeVoice's tokenizer: streamed = whole, both checkpoint formats, and the join built on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import VibeVoiceAcousticTokenizerConfig, VibeVoiceAcousticTokenizerModel

from tontaube.codec.dac_codec import DacCodec, DacConfig, build_dac
from tontaube.codec.decoder import Join, StreamDecoder
from tontaube.codec.vibevoice import VibeVoice
from tontaube.errors import BundleError

SIZES: dict[str, Any] = {"num_filters": 4, "hidden_size": 8, "depths": [1, 1, 1, 1, 1, 1, 2]}
SMALL = DacConfig(
    encoder_dim=2,
    decoder_dim=64,
    latent=16,
    acoustic_streams=3,
    acoustic_codes=16,
    semantic_codes=32,
    features=12,
    semantic_dim=16,
    semantic_hidden=24,
)


def network() -> Any:
    """A small tokenizer at the released rates, with every weight large enough to matter."""
    torch.manual_seed(0)
    model = VibeVoiceAcousticTokenizerModel(VibeVoiceAcousticTokenizerConfig(**SIZES))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("gamma"):
                parameter.fill_(0.3)
            elif parameter.ndim > 1:
                torch.nn.init.kaiming_normal_(parameter).mul_(0.7)
            else:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def signal(kind: str, samples: int) -> Tensor:
    t = torch.arange(samples) / 24_000
    generator = torch.Generator().manual_seed(0)
    return {
        "sine": 0.3 * torch.sin(2 * torch.pi * 220 * t),
        "silence": torch.zeros(samples),
        "noise": 0.3 * torch.randn(samples, generator=generator),
    }[kind]


@pytest.fixture(scope="module")
def codec() -> VibeVoice:
    return VibeVoice(network())


@pytest.mark.parametrize("kind", ["sine", "silence", "noise"])
@pytest.mark.parametrize("cuts", [[1] * 12, [3, 6, 3], [5, 1, 6]])
def test_streamed_equals_whole(codec: VibeVoice, kind: str, cuts: list[int]) -> None:
    assert codec.hop == 3_200
    samples = signal(kind, 12 * codec.hop)
    whole = codec.decode(codec.encode(samples))
    assert whole.shape == samples.shape
    state, pieces = codec.initial_state(), []
    for piece in samples.split([cut * codec.hop for cut in cuts]):
        out, state = codec.process(piece, state)
        pieces.append(out)
    assert (torch.cat(pieces) - whole).abs().max() < 1e-4
    assert kind == "silence" or whole.std() > 1e-3


def test_the_mean_is_taken_not_a_sample(codec: VibeVoice) -> None:
    samples = signal("noise", 4 * codec.hop)
    assert torch.equal(codec.encode(samples), codec.encode(samples))


def test_streams_do_not_touch_each_other(codec: VibeVoice) -> None:
    a, b = signal("sine", 8 * codec.hop), signal("noise", 8 * codec.hop)
    alone, _ = codec.process(a, codec.initial_state())
    one, two, mixed = codec.initial_state(), codec.initial_state(), []
    for piece, other in zip(a.split(2 * codec.hop), b.split(2 * codec.hop), strict=True):
        out, one = codec.process(piece, one)
        _, two = codec.process(other, two)
        mixed.append(out)
    assert (torch.cat(mixed) - alone).abs().max() < 1e-4


def export(folder: Path) -> Any:
    model = network()
    model.save_pretrained(folder)
    return model


def original(folder: Path) -> Any:
    """The same weights under the names and with the configuration of the 1.5B checkpoint."""
    model = network()
    tensors = {"model.language_model.norm.weight": torch.ones(3)}
    for name, tensor in model.state_dict().items():
        side, rest = name.split(".", 1)
        change = "downsample_layers" if side == "encoder" else "upsample_layers"
        rest = rest.replace("mixer.conv.", "mixer.conv.conv.conv.")
        rest = rest.replace("head.conv.", "head.conv.conv.")
        for stage in range(7):
            before = "stem." if stage == 0 else f"conv_layers.{stage - 1}."
            rest = rest.replace(f"{before}stage.", f"stages.{stage}.")
            rest = rest.replace(f"{before}conv.conv.", f"{change}.{stage}.0.conv.conv.")
            rest = rest.replace(f"{before}convtr.convtr.", f"{change}.{stage}.0.convtr.convtr.")
        tensors[f"model.acoustic_tokenizer.{side}.{rest}"] = tensor.bfloat16()
    shards = {f"model-{i}-of-2.safetensors": dict(list(tensors.items())[i::2]) for i in (0, 1)}
    for shard, part in shards.items():
        save_file(part, folder / shard)
    index = {"weight_map": {name: shard for shard, part in shards.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    sizes = {
        "vae_dim": 8,
        "encoder_n_filters": 4,
        "encoder_ratios": [8, 5, 5, 4, 2, 2],
        "encoder_depths": "1-1-1-1-1-1-2",
        "decoder_depths": None,
        "layernorm_eps": 1e-5,
        "mixer_layer": "depthwise_conv",
    }
    config = {"model_type": "vibevoice", "acoustic_tokenizer_config": sizes}
    (folder / "config.json").write_text(json.dumps(config))
    return model.bfloat16().float()


@pytest.mark.parametrize("write", [export, original])
def test_loads_both_checkpoint_formats(tmp_path: Path, write: Any) -> None:
    expected = VibeVoice(write(tmp_path))
    loaded = VibeVoice.load(tmp_path)
    samples = signal("noise", 4 * loaded.hop)
    assert torch.equal(loaded.encode(samples), expected.encode(samples))
    latents = torch.randn(4, 8, generator=torch.Generator().manual_seed(1))
    assert torch.equal(loaded.decode(latents), expected.decode(latents))


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"config\.json: not found"):
        VibeVoice.load(tmp_path)
    export(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_filters": 6}))
    with pytest.raises(BundleError, match=r"misshapen tensors: .*stem\.conv"):
        VibeVoice.load(tmp_path)
    sizes = {"encoder_ratios": [2], "encoder_depths": "1-1", "mixer_layer": "conv"}
    (tmp_path / "config.json").write_text(json.dumps({"acoustic_tokenizer_config": sizes}))
    with pytest.raises(BundleError, match=r"mixer_layer is 'conv'"):
        VibeVoice.load(tmp_path)


@pytest.mark.parametrize("withheld", [5, 27])
def test_the_join_streams_dualcodec_through_vibevoice(codec: VibeVoice, withheld: int) -> None:
    torch.manual_seed(0)
    dac = DacCodec(build_dac(SMALL), streams=4)
    codes = np.random.default_rng(0).integers(0, 16, (4, 83))
    samples = []
    for cuts in ([83], [40, 12, 3, 28]):
        stream = StreamDecoder(dac, Join(codec, withheld_frames=withheld))
        pieces, at = [], 0
        for cut in cuts:
            pieces.append(stream.push(codes[:, at : at + cut]))
            assert pieces[-1].size % 9_600 == 0  # 0.4 s: 5 DualCodec = 3 VibeVoice frames
            at += cut
        pieces.append(stream.finish())
        samples.append(np.concatenate(pieces))
        assert samples[-1].size == 83 * 1_920 - 4
    if withheld == dac.right_context:  # nothing is decoded before all it depends on is there
        assert np.abs(samples[0] - samples[1]).max() < 1e-4
