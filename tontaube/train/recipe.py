"""The shipped bundle's sizes, and the steps that train it, with their minutes."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Tokenizer

from tontaube.codec.build import SpectralConfig
from tontaube.tokens import StageConfig
from tontaube.train.tokenizer import stage_ids

LANGUAGES = {
    "english": "en", "german": "de", "spanish": "es", "french": "fr", "italian": "it",
    "dutch": "nl", "portuguese": "pt",
}  # fmt: skip
STYLES = ("audiobook", "conversational", "agentic")


@dataclass(frozen=True, slots=True)
class Shape:
    """Blocks, width, MLP, query / key-value heads of 64, width of the audio head's hidden layer."""

    blocks: int
    width: int
    inner: int
    heads: int
    kv_heads: int
    head: int


@dataclass(frozen=True, slots=True)
class Speaker:
    """A voice that ships if the corpus has its timbre: id and name, language, the timbre."""

    id: str
    language: str
    timbre: str

    @property
    def name(self) -> str:
        return self.id.capitalize()


SPEAKERS = (
    Speaker("heart", "english", "heart"), Speaker("michael", "english", "am_michael"),
    Speaker("emma", "english", "bf_emma"), Speaker("george", "english", "bm_george"),
    Speaker("greta", "german", "af_bella"), Speaker("jonas", "german", "am_fenrir"),
    Speaker("dora", "spanish", "ef_dora"), Speaker("diego", "spanish", "em_alex"),
    Speaker("elise", "french", "ff_siwis"), Speaker("luc", "french", "bm_lewis"),
    Speaker("sara", "italian", "if_sara"), Speaker("nicola", "italian", "im_nicola"),
    Speaker("femke", "dutch", "bf_isabella"), Speaker("daan", "dutch", "am_adam"),
    Speaker("clara", "portuguese", "af_aoede"), Speaker("tiago", "portuguese", "am_eric"),
)  # fmt: skip

SHAPES = (
    Shape(5, 256, 640, 4, 2, 256),
    Shape(3, 192, 384, 3, 1, 256),
    Shape(2, 128, 256, 2, 1, 128),
    Shape(2, 128, 256, 2, 1, 128),
)

STEPS = (
    ("data", 0),  # minutes in all, with what the same step had before; 0: until it is done
    ("table", 0),
    ("semantic", 20),
    ("stage 0", 177),
    ("codec", 40),
    ("codes", 0),
    ("decoder", 30),
    ("stage 1", 92),
    ("stage 2", 16),
    ("stage 3", 15),
    ("predict --shards 10", 0),
    ("decoder", 95),
    ("export", 0),
)
QUICK_LINES, QUICK_MINUTES = 1_100, 0.5


def command_lines(run: str, target: str, *, quick: bool = False) -> list[list[str]]:
    """The commands of ``python -m tontaube.train`` that make a bundle, in order; ``quick``: a toy
    that says nothing intelligible, but by way of every step."""
    lines: list[list[str]] = []
    for number, (step, minutes) in enumerate(STEPS):
        words = [*step.split(), "--run", run]
        if minutes:
            times = sum(name == step for name, _ in STEPS[: number + 1])
            words += ["--minutes", str(times * QUICK_MINUTES if quick else minutes)]
        if step == "data" and quick:
            words += ["--limit", str(QUICK_LINES)]
        if step == "export":
            words += ["--target", target]
        lines.append(words)
    return lines


def stage_config(
    stage: int, shape: Shape, tokenizer: Tokenizer, codec: SpectralConfig
) -> StageConfig:
    """The ``config.json`` of a stage of the small bundle."""
    ids = stage_ids(tokenizer)
    codes = codec.semantic_codes + stage * codec.acoustic_codes
    return StageConfig(
        hidden_size=shape.width,
        num_hidden_layers=shape.blocks,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=64,
        intermediate_size=shape.inner,
        rope_theta=10_000.0,
        vocab_size=ids["audio_token_start_id"] + codes,
        max_position_embeddings=4096,
        target_codebook=stage,
        audio_head_hidden=shape.head,
        semantic_vocab_size=codec.semantic_codes,
        acoustic_vocab_size=codec.acoustic_codes,
        **ids,
    )
