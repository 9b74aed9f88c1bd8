"""A model bundle's description (``bundle.json``) and its checked paths; it loads no weights.

Everything in which bundles differ stands in the description: no code branches on a bundle's name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tontaube.errors import BundleError
from tontaube.types import STREAMS

MINI = Path(__file__).parent / "bundles" / "mini"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Segmentation(_Part):
    """How long text is cut (report, section 4.3), in characters."""

    max_characters: int = Field(350, ge=16)
    lookahead: int = Field(50, ge=0)


class Silence(_Part):
    """Codes of silence, a property of a checkpoint (contract, section 7)."""

    onset: int | None = None  # forced as the first frame of the first segment
    codes: tuple[int, ...] = ()  # biased, and more so with each retry
    more_codes: tuple[int, ...] = ()  # biased, not raised with retries
    trailing: tuple[int, ...] = ()  # one code a stream
    trailing_frames: int = 0


class SamplingDefaults(_Part):
    """Sampling and quality defaults of CB0 (contract, section 7)."""

    temperature: float = 0.8
    top_p: float = 0.95
    top_k: int = 50
    acoustic_temperature: float = 0.0
    end_of_speech_bias: float = -0.8
    silence_bias: float = -0.2
    silence_bias_per_retry: float = -0.3
    min_frames: int = 13
    max_frames: int = 400
    tries: int = 5
    min_characters_per_second: float = 6.0
    max_characters_per_second: float = 24.0
    rate_checked_above_characters: int = 30
    max_silence_ratio: float = 0.4
    silence_checked_frames: int = 50


class Streaming(_Part):
    """Sub-chunk sizes (report, section 5), in frames of 80 ms."""

    initial_frames: int = 40
    withheld_frames: int = 5  # generated beyond what is emitted, for the join
    growth: float = 1.5
    max_frames: int = 100


class CodecPart(_Part):
    """The codec network and its weights; ``config`` holds the network's own sizes."""

    kind: Literal["dac", "spectral"]
    weights: str
    features: Literal["w2vbert", "logmel"]
    features_path: str | None = None  # w2v-BERT's folder
    features_stats: str | None = None  # mean and variance of hidden state 17
    config: dict[str, Any] = Field(default_factory=dict)


class JoinPart(_Part):
    """How decoded windows become one stream: see ``codec.decoder``."""

    kind: Literal["exact", "vibevoice"] = "exact"
    path: str | None = None


class VoicePart(_Part):
    """A voice that ships: reference codes (safetensors, tensor ``codes`` int [4, T]) or audio."""

    id: str
    name: str
    language: str
    style: str
    codes: str | None = None  # neither codes nor audio: the model speaks without a prompt
    audio: str | None = None
    preview: str | None = None


class Description(_Part):
    """``bundle.json``."""

    format: Literal[1] = 1
    id: str
    revision: str
    license: str
    sample_rate: int = 24_000
    stages: tuple[str, str, str, str] = ("cb0", "cb1", "cb2", "cb3")
    tokenizer: str = "tokenizer"
    codec: CodecPart
    join: JoinPart = JoinPart()
    languages: dict[str, str]  # label → ISO code
    styles: tuple[str, ...]
    default_voice: str
    voices: tuple[VoicePart, ...]
    voice_aliases: dict[str, str] = Field(default_factory=dict)
    segmentation: Segmentation = Segmentation()
    sampling: SamplingDefaults = SamplingDefaults()
    silence: Silence = Silence()
    streaming: Streaming = Streaming()
    prompt_frames: tuple[int, int, int, int] = (750, 300, 150, 100)
    context_tokens: tuple[int, int, int, int] = (2500, 2000, 2400, 3000)


class Bundle:
    """A description and the folder its paths are relative to."""

    def __init__(self, root: Path, description: Description) -> None:
        self.root = root
        self.description = description

    @classmethod
    def open(cls, root: Path) -> Bundle:
        """Read ``root/bundle.json``. Raises BundleError naming the file or field at fault."""
        path = root / "bundle.json"
        try:
            description = Description.model_validate(json.loads(path.read_text("utf-8")))
        except FileNotFoundError:
            raise BundleError(f"{path}: not found; is this folder a model bundle?") from None
        except (ValidationError, json.JSONDecodeError) as error:
            raise BundleError(f"{path}: {error}") from error
        return cls(root, description)

    def path(self, relative: str) -> Path:
        """A file of the bundle. Raises BundleError if it is missing or lies outside the bundle."""
        path = (self.root / relative).resolve()
        if not path.is_relative_to(self.root.resolve()):
            raise BundleError(f"{relative}: points outside the bundle {self.root}")
        if not path.exists():
            raise BundleError(f"{path}: missing from the bundle")
        return path

    def stage(self, stage: int) -> Path:
        """The folder of CB{stage}: ``config.json`` and safetensors."""
        assert 0 <= stage < STREAMS
        return self.path(self.description.stages[stage])
