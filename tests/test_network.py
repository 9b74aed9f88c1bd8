"""The stage network against the contract's sizes and against another implementation."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import Qwen3Model

from tests.tiny import tiny_config, tiny_network, write_tiny_stages
from tontaube.backend.network import StageNetwork, fused_attention
from tontaube.backend.weights import load_stage, save_stage
from tontaube.bench.steps import qwen3_config
from tontaube.codec.tensors import in_int8, load_tensors, widened
from tontaube.errors import BundleError
from tontaube.tokens import StageConfig

torch.set_num_threads(1)


def released_config(stage: int, blocks: int, width: int, inner: int) -> StageConfig:
    return StageConfig(
        hidden_size=width,
        num_hidden_layers=blocks,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=inner,
        vocab_size=151_665 + 16_384 + stage * 4_096 + 8,
        audio_token_start_id=151_665,
        target_codebook=stage,
        audio_head_hidden=4_096,
        pad_token_id=151_643,
        eos_token_id=151_662,
        audio_marker_token_id=151_664,
        text_marker_token_id=151_663,
    )


@pytest.mark.parametrize(
    ("stage", "blocks", "width", "inner", "parameters"),
    [
        (0, 28, 2_048, 6_144, 1_829_116_930),
        (1, 16, 1_024, 3_072, 448_960_512),
        (2, 8, 1_024, 3_072, 327_307_264),
        (3, 4, 1_024, 3_072, 268_577_792),
    ],
)
def test_released_stages_have_the_reported_parameters(
    stage: int, blocks: int, width: int, inner: int, parameters: int
) -> None:
    with torch.device("meta"):
        network = StageNetwork(released_config(stage, blocks, width, inner))
    assert sum(p.numel() for p in network.parameters()) == parameters


def test_names_are_those_of_the_released_checkpoints() -> None:
    names = StageNetwork(tiny_config()).state_dict().keys()
    outside = {name for name in names if not name.startswith("model.layers.")}
    assert outside == {
        "model.embed_tokens.weight",
        "model.norm.weight",
        *(f"audio_head.{layer}.{kind}" for layer in ("fc1", "fc2") for kind in ("weight", "bias")),
    }
    first = {n.removeprefix("model.layers.0.") for n in names if n.startswith("model.layers.0.")}
    assert first == {
        *(f"self_attn.{m}.weight" for m in ("q_proj", "k_proj", "v_proj", "o_proj")),
        *(f"self_attn.{m}.weight" for m in ("q_norm", "k_norm")),
        *(f"mlp.{m}.weight" for m in ("gate_proj", "up_proj", "down_proj")),
        *(f"{m}.weight" for m in ("input_layernorm", "post_attention_layernorm")),
    }


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_trunk_equals_another_implementation_of_qwen3(kv_heads: int) -> None:
    config = tiny_config(num_key_value_heads=kv_heads)
    network = tiny_network(config)
    other = Qwen3Model(qwen3_config(config)).eval()
    other.load_state_dict(network.model.state_dict())
    ids, positions = torch.randint(0, 100, (2, 50)), torch.randint(0, 400, (2, 50))
    # without an explicit mask that library takes jumping positions for packed sequences
    mask = torch.full((50, 50), float("-inf")).triu(1).expand(2, 1, 50, 50)
    with torch.no_grad():
        expected = other(ids, position_ids=positions, attention_mask=mask).last_hidden_state
        torch.testing.assert_close(network(ids, positions), expected, atol=1e-4, rtol=0)


def test_both_attentions_agree_and_padding_on_the_right_changes_nothing() -> None:
    config = tiny_config()
    network = tiny_network(config)
    fused = StageNetwork(config, attention=fused_attention).eval()
    fused.load_state_dict(network.state_dict())
    ids, positions = torch.randint(0, 100, (2, 40)), torch.randint(0, 400, (2, 40))
    with torch.no_grad():
        hidden = network(ids, positions)
        torch.testing.assert_close(fused(ids, positions), hidden, atol=1e-4, rtol=0)
        short = network(ids[:1, :25], positions[:1, :25])
        torch.testing.assert_close(hidden[:1, :25], short, atol=1e-4, rtol=0)


def test_gradients_reach_every_parameter() -> None:
    network = tiny_network(tiny_config()).train()
    ids = torch.arange(100).repeat(2, 1)
    network.head(network(ids, ids)).square().mean().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_a_saved_stage_loads_unchanged(tmp_path: Path) -> None:
    network = tiny_network(tiny_config(1))
    save_stage(network, tmp_path, dtype=torch.float32)
    loaded = load_stage(tmp_path)
    assert loaded.config == network.config
    for name, tensor in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)
    half = load_stage(tmp_path, dtype=torch.bfloat16)
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}


def test_a_sharded_stage_loads_unchanged(tmp_path: Path) -> None:
    network = tiny_network(tiny_config())
    save_stage(network, tmp_path, dtype=torch.float32)
    tensors = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    shards: dict[str, str] = {}
    for i, (name, tensor) in enumerate(tensors.items()):
        shards[name] = f"model-{i % 2}.safetensors"
        del tensor
    for shard in set(shards.values()):
        save_file({n: t for n, t in tensors.items() if shards[n] == shard}, tmp_path / shard)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": shards}))
    loaded = load_stage(tmp_path).state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())
    (tmp_path / "model-1.safetensors").unlink()
    with pytest.raises(BundleError, match="model-1"):
        load_stage(tmp_path)
    index.write_text("{}")
    with pytest.raises(BundleError, match="index"):
        load_stage(tmp_path)


def test_matrices_may_be_kept_in_int8(tmp_path: Path) -> None:
    layers = nn.Sequential(nn.Conv1d(3, 5, 7), nn.LayerNorm(5), nn.Linear(5, 256))
    tensors = in_int8(layers.state_dict(), least=100)
    kept = [name for name, tensor in tensors.items() if tensor.dtype == torch.int8]
    assert kept == ["0.weight", "2.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    read = nn.Sequential(nn.Conv1d(3, 5, 7), nn.LayerNorm(5), nn.Linear(5, 256))
    load_tensors(read, tmp_path)
    for (name, was), now in zip(layers.state_dict().items(), read.parameters(), strict=True):
        largest = was.flatten(1).abs().amax(1) if name in kept else was.new_zeros(())
        off = (now - was).abs()
        assert bool(
            (off.flatten(1).amax(1) <= largest / 253).all() if name in kept else not off.any()
        )
    del tensors["2.weight.scales"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(BundleError, match=r"2\.weight.*int8"):
        load_tensors(read, tmp_path)


@given(st.randoms())
def test_int8_tensors_find_their_scales_in_any_order(rng: random.Random) -> None:
    matrices = {name: torch.randn(3, 5) for name in "abc"}
    stored = [*in_int8(matrices, least=1).items(), ("plain", torch.ones(2))]
    rng.shuffle(stored)
    wide = dict(widened(stored))
    assert wide.keys() == {*matrices, "plain"}
    for name, matrix in matrices.items():
        torch.testing.assert_close(wide[name], matrix, atol=0.02, rtol=0)
    del stored[next(i for i, (name, _) in enumerate(stored) if name.endswith(".scales"))]
    with pytest.raises(BundleError, match="int8"):
        dict(widened(stored))


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    save_stage(tiny_network(tiny_config()), tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    name = "model.layers.1.mlp.up_proj.weight"

    save_file({n: t for n, t in tensors.items() if n != name}, path)
    with pytest.raises(BundleError, match=f"missing tensors.*{name}"):
        load_stage(tmp_path)
    save_file({**tensors, "lm_head.weight": torch.zeros(2)}, path)
    with pytest.raises(BundleError, match=r"unknown tensors.*lm_head\.weight"):
        load_stage(tmp_path)
    save_file({**tensors, name: torch.zeros(3, 4)}, path)
    with pytest.raises(BundleError, match=rf"misshapen.*{name} is \[3, 4\] instead of \[80, 48\]"):
        load_stage(tmp_path)
    path.write_bytes(b"not a tensor in sight")
    with pytest.raises(BundleError, match="damaged"):
        load_stage(tmp_path)
    path.unlink()
    with pytest.raises(BundleError, match="neither"):
        load_stage(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(BundleError, match=r"config\.json"):
        load_stage(tmp_path)


def test_tiny_stages_are_written_reproducibly(tmp_path: Path) -> None:
    first, second = write_tiny_stages(tmp_path / "a"), write_tiny_stages(tmp_path / "b")
    for stage in range(4):
        one, two = load_stage(first.stage(stage)), load_stage(second.stage(stage))
        assert one.config.target_codebook == stage
        for name, tensor in one.state_dict().items():
            assert torch.equal(two.state_dict()[name], tensor)
