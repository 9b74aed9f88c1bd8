"""A model in the released layout, to be served by the hub's stand-in: several repositories, a stage
in shards, Qwen's tokenizer beside each, pickled statistics; tiny widths, random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import SeamlessM4TFeatureExtractor, Wav2Vec2BertConfig, Wav2Vec2BertModel

from tests.test_vibevoice import original
from tests.tiny import ACOUSTIC_CODES, LANGUAGES, SEMANTIC_CODES, STYLES, write_tiny_stages
from tontaube.bundle import RELEASED
from tontaube.codec.dac_codec import DacConfig, build_dac

MODEL = "TontaubeAI/TontaubeV1"
TINY = "TontaubeAI/Tiny"  # the same files, with a description that has their sizes
_WIDTH = 16  # of w2v-BERT
CODEC = DacConfig(
    encoder_dim=2,
    decoder_dim=64,
    latent=16,
    acoustic_codes=ACOUSTIC_CODES,
    semantic_codes=SEMANTIC_CODES,
    features=_WIDTH,
    semantic_dim=16,
    semantic_hidden=24,
)


def write_released(folder: Path) -> dict[str, str]:
    """Write the repositories below ``folder``; each with its revision."""
    released = json.loads(RELEASED.read_text("utf-8"))
    sources = {source["repo"]: source["revision"] for source in released["sources"].values()}
    model, dualcodec, w2vbert, vibevoice = (folder / name for name in (MODEL, *sources))
    _write_stages(model)
    dualcodec.mkdir(parents=True)
    torch.manual_seed(0)
    name = released["codec"]["weights"].partition(":")[2]
    save_file(build_dac(CODEC).state_dict(), dualcodec / name)
    (dualcodec / "dualcodec_25hz.safetensors").write_bytes(b"not wanted")
    statistics = {"mean": torch.zeros(_WIDTH), "var": torch.ones(_WIDTH)}
    torch.save(statistics, dualcodec / released["codec"]["features_stats"].partition(":")[2])
    config = Wav2Vec2BertConfig(
        hidden_size=_WIDTH, num_hidden_layers=24, num_attention_heads=2, intermediate_size=24
    )
    Wav2Vec2BertModel(config).save_pretrained(w2vbert)
    SeamlessM4TFeatureExtractor().save_pretrained(w2vbert)
    (w2vbert / "conformer_shaw.pt").write_bytes(b"not wanted")
    _write_vibevoice(vibevoice)
    (folder / TINY).symlink_to(model, target_is_directory=True)
    (model / "bundle.json").write_text(json.dumps(_tiny(released)), "utf-8")
    return {MODEL: released["revision"], TINY: "main", **sources}


def _write_stages(model: Path) -> None:
    """cb0 .. cb3, each with the tokenizer beside it; one of them in shards."""
    write_tiny_stages(model)
    tokenizer = (model / "tokenizer" / "tokenizer.json").read_text("utf-8")
    for stage in range(4):
        (model / f"cb{stage}" / "tokenizer.json").write_text(tokenizer, "utf-8")
        (model / f"cb{stage}" / "pytorch_model.bin").write_bytes(b"not wanted")
    tensors = load_file(model / "cb1" / "model.safetensors")
    (model / "cb1" / "model.safetensors").unlink()
    names = [f"model-{i:05}-of-00002.safetensors" for i in (1, 2)]
    for i, name in enumerate(names):
        save_file(dict(list(tensors.items())[i::2]), model / "cb1" / name)
    places = {tensor: names[i % 2] for i, tensor in enumerate(tensors)}
    index = {"metadata": {}, "weight_map": places}
    (model / "cb1" / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")


def _write_vibevoice(folder: Path) -> None:
    """The original checkpoint, whose language model lies in a shard of its own."""
    folder.mkdir(parents=True)
    original(folder)
    save_file({"model.language_model.embed": torch.ones(3)}, folder / "model-language.safetensors")
    index = folder / "model.safetensors.index.json"
    found = json.loads(index.read_text("utf-8"))
    del found["weight_map"]["model.language_model.norm.weight"]
    found["weight_map"]["model.language_model.embed"] = "model-language.safetensors"
    index.write_text(json.dumps(found), "utf-8")


def _tiny(released: dict[str, Any]) -> dict[str, Any]:
    """The released description with the sizes of what is served."""
    codes = {"onset": 5, "codes": [5, 6], "more_codes": [], "trailing": [7, 0, 0, 0]}
    chosen = {"min_frames": 6, "max_frames": 20, "tries": 1, "min_characters_per_second": 0.1}
    chosen |= {"max_characters_per_second": 1_000.0, "max_silence_ratio": 1.0}
    chosen |= {"end_of_speech_bias": 50.0}  # random weights end as soon as they may
    return released | {
        "id": TINY,
        "codec": released["codec"] | {"config": CODEC.model_dump(mode="json")},
        "languages": LANGUAGES,
        "styles": STYLES,
        "sampling": released["sampling"] | chosen,
        "silence": released["silence"] | codes,
        "context_tokens": [400] * 4,
        "prompt_frames": [30, 20, 15, 10],
    }
