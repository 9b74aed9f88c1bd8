"""Where, in which types and in how much memory stages run: pure functions of settings and sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    SeamlessM4TFeatureExtractor,
    VibeVoiceAcousticTokenizerConfig,
    VibeVoiceAcousticTokenizerModel,
    Wav2Vec2BertConfig,
)

from tests.test_network import released_config
from tests.tiny import tiny_config, tiny_job, write_tiny_bundle
from tontaube.assembly import assemble
from tontaube.backend.network import StageNetwork
from tontaube.backend.torch import TorchStage
from tontaube.backend.vllm.beside import codec_working
from tontaube.backend.vllm.capacity import Beside, Memory, StageSize
from tontaube.bundle import RELEASED, read_description
from tontaube.codec.dac_codec import DacConfig, build_dac
from tontaube.codec.w2vbert import empty_w2vbert
from tontaube.config import Settings
from tontaube.doctor import Finding, divide, weigh
from tontaube.errors import Unavailable
from tontaube.footprint import (
    Footprint,
    Storage,
    codec_footprint,
    stage_footprint,
    stage_parameters,
    stages_footprint,
)
from tontaube.numerics import int8_weights, stage_device, stage_dtype
from tontaube.tokens import StageConfig

CPU, GPU = torch.device("cpu"), torch.device("cuda:1")
GIB = 2**30
SIZES = ((28, 2_048, 6_144), (16, 1_024, 3_072), (8, 1_024, 3_072), (4, 1_024, 3_072))
STAGES = [released_config(stage, *sizes) for stage, sizes in enumerate(SIZES)]


def test_the_type_follows_the_device_unless_it_is_said() -> None:
    assert stage_dtype("auto", GPU) == torch.bfloat16
    assert stage_dtype("auto", CPU) == stage_dtype("auto", torch.device("mps")) == torch.float32
    for name in ("float32", "bfloat16", "float16"):
        for device in (CPU, GPU):
            assert stage_dtype(name, device) == getattr(torch, name)


def test_int8_is_for_the_cpu() -> None:
    assert int8_weights("int8", CPU) and not int8_weights("full", CPU)
    assert not int8_weights("full", GPU)
    with pytest.raises(Unavailable, match="TONTAUBE_WEIGHTS=full"):
        int8_weights("int8", GPU)


@pytest.mark.parametrize(
    ("engine", "device", "vllm", "place"),
    [
        ("auto", GPU, True, GPU),
        ("auto", GPU, False, CPU),
        ("vllm", GPU, True, GPU),
        ("torch", GPU, True, CPU),
        ("auto", CPU, True, CPU),
        ("vllm", CPU, True, CPU),
    ],
)
def test_where_stages_run(
    engine: str, device: torch.device, vllm: bool, place: torch.device
) -> None:
    assert stage_device(engine, device, vllm=vllm) == place


@pytest.mark.parametrize("config", [*STAGES, *map(tiny_config, range(4))])
def test_parameters_are_those_of_the_network(config: StageConfig) -> None:
    with torch.device("meta"):
        network = StageNetwork(config)
    assert stage_parameters(config) == sum(p.numel() for p in network.parameters())


def test_int8_keeps_a_byte_of_each_matrix_parameter() -> None:
    """From three quarters of a large stage's parameters to all but embeddings and norms."""
    for config in STAGES:
        full = stage_footprint(config, 100, Storage(torch.float32))
        small = stage_footprint(config, 100, Storage(torch.float32, int8=True))
        embeddings = config.vocab_size * config.hidden_size
        saved = stage_parameters(config) - embeddings  # and the norms and biases, which stay
        assert full.weights - small.weights == pytest.approx(3 * saved, rel=1e-3)
        assert small.cache == full.cache == 2 * config.num_hidden_layers * 1_024 * 100 * 4


def test_the_setting_reaches_the_stages(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path)
    codes = {}
    for weights in ("full", "int8"):
        fields = {"model": str(tmp_path), "weights": weights, "device": "cpu", "engine": "torch"}
        _, machinery = assemble(Settings(**fields))
        expected = TorchStage.open(tmp_path / "cb1", int8=weights == "int8")
        codes[weights] = []
        for stage in (machinery.stages[1], expected):
            stage.add(tiny_job("x", 40, 30))
            given: list[int] = []
            while len(given) < 30:
                given += [code for output in stage.step() for code in output.codes]
            codes[weights].append(given)
    assert codes["full"][0] == codes["full"][1] and codes["int8"][0] == codes["int8"][1]
    assert codes["full"] != codes["int8"]  # or nothing was rounded


def around(folder: Path) -> int:
    """Parameters of the codec, its features and its join, in the sizes they are released with."""
    Wav2Vec2BertConfig().save_pretrained(folder)
    SeamlessM4TFeatureExtractor().save_pretrained(folder)
    sizes = DacConfig.model_validate(read_description(RELEASED).codec.config)
    with torch.device("meta"):
        join = VibeVoiceAcousticTokenizerModel(VibeVoiceAcousticTokenizerConfig())
        networks = [build_dac(sizes), empty_w2vbert(folder)[0], join]
    return sum(t.numel() for network in networks for t in network.state_dict().values())


def test_the_released_model_fits_24_gib_and_not_8(tmp_path: Path) -> None:
    codec, tokens = codec_footprint(around(tmp_path)), read_description(RELEASED).context_tokens

    def all_of(sequences: int) -> Footprint:
        return (
            stages_footprint(STAGES, tokens, Storage(torch.bfloat16, sequences=sequences)) + codec
        )

    assert 4.5e9 < codec.weights < 5e9  # float32; more than half of it VibeVoice
    fits, short = (weigh("all", all_of(16), n * GIB) for n in (24, 8))
    assert not fits.problem and "TONTAUBE_MAX_BATCH" not in fits.text
    assert short.problem and "lower TONTAUBE_MAX_BATCH" in short.text
    assert "8.6 GB are free" in short.text
    assert not weigh("all", all_of(16), None).problem  # it cannot be told
    assert all_of(64).need > 24 * GIB


def test_with_vllm_the_plan_is_its_own(tmp_path: Path) -> None:
    released = read_description(RELEASED)
    beside = Beside(codec_footprint(around(tmp_path)).weights, codec_working(released))
    tokens = released.context_tokens
    sizes = [
        StageSize.of(config, context, torch.bfloat16)
        for config, context in zip(STAGES, tokens, strict=True)
    ]

    def found(gib: int, **changes: Any) -> Finding:
        memory = Memory(gib * GIB, gib * GIB)
        return divide(Settings(**changes), sizes, beside, memory, on_gpu=True)

    assert not found(24).problem and int(found(24).text.split()[0]) >= 8
    assert found(80).text.startswith("16 streams at once")
    assert found(80, max_batch=64).text.startswith("64 streams at once")
    assert found(8).problem and "TONTAUBE_ENGINE=torch" in found(8).text
    assert found(24, profile="tiny").problem
