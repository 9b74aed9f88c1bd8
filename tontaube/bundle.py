"""A model bundle's description (``bundle.json``) and its checked paths; it loads no weights.

Everything in which bundles differ stands in the description: no code branches on a bundle's name.
A path in it is relative to the bundle's folder, or to a source's when written ``source:path``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tontaube.errors import BundleError, InvalidRequest
from tontaube.types import STREAMS

MINI = Path(__file__).parent / "bundles" / "mini"
RELEASED = Path(__file__).parent / "bundles" / "released.json"
OWN = ""  # the source that is the bundle's own folder


@dataclass(frozen=True, slots=True)
class Want:
    """Files that a bundle needs of one folder of one source."""

    source: str  # OWN, or a key of ``Description.sources``
    folder: str  # "" is the source's root
    files: tuple[str, ...]
    weights: bool = False  # and model.safetensors, whole or in shards
    tensors: str = ""  # of the shards, those with a tensor whose name begins so

    @classmethod
    def file(cls, path: str) -> Self:
        """The one file that ``path`` of a description names."""
        source, inner = split_path(path)
        at = PurePosixPath(inner)
        return cls(source, "" if at.parent.name == "" else str(at.parent), (at.name,))

    @classmethod
    def parts_of(
        cls, path: str, *files: str, weights: bool = False, tensors: str | None = None
    ) -> Self:
        """Files below the folder that ``path`` of a description names."""
        source, inner = split_path(path)
        return cls(source, inner.strip("/"), files, weights, tensors or "")

    def name(self, file: str) -> str:
        """A file's path in the source."""
        return f"{self.folder}/{file}" if self.folder else file


def split_path(path: str) -> tuple[str, str]:
    """``source:path`` → the source and the path in it; a plain path is the bundle's own."""
    source, colon, inner = path.partition(":")
    return (source, inner) if colon else (OWN, path)


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


class Source(_Part):
    """A hub repository that holds parts of a bundle; the revision pins them."""

    repo: str
    revision: str
    license: str | None = None


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
    tensors: str | None = None  # how the names begin that are read of a larger checkpoint


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
    sources: dict[str, Source] = Field(default_factory=dict)
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

    @model_validator(mode="after")
    def _sources_are_known(self) -> Self:
        for want in self.wants():
            if want.source != OWN and want.source not in self.sources:
                raise ValueError(f"a path names the source {want.source!r}, which is not described")
        return self

    def language_named(self, wanted: str) -> str:
        """The label for a label or an ISO code, with or without a region. Raises InvalidRequest."""
        name = wanted.strip().lower()
        code = name.replace("_", "-").partition("-")[0]
        for label, iso in self.languages.items():
            if label == name or iso == code:
                return label
        names = ", ".join(f"{label} ({iso})" for label, iso in self.languages.items())
        raise InvalidRequest(f"unknown language {wanted!r}; choose one of: {names}", "language")

    def style_named(self, wanted: str) -> str:
        """The style, if there is such a one. Raises InvalidRequest."""
        if wanted not in self.styles:
            styles = ", ".join(self.styles)
            raise InvalidRequest(f"unknown style {wanted!r}; choose one of: {styles}", "style")
        return wanted

    def wants(self) -> tuple[Want, ...]:
        """Every file that the bundle needs."""
        codec, join = self.codec, self.join
        config = "config.json"
        wants = [Want.parts_of(stage, config, weights=True) for stage in self.stages]
        wants += [Want.parts_of(self.tokenizer, "tokenizer.json"), Want.file(codec.weights)]
        if codec.features_path is not None:
            files = (config, "preprocessor_config.json")
            wants.append(Want.parts_of(codec.features_path, *files, weights=True))
        if codec.features_stats is not None:
            wants.append(Want.file(codec.features_stats))
        if join.path is not None:
            wants.append(Want.parts_of(join.path, config, weights=True, tensors=join.tensors))
        for voice in self.voices:
            paths = (voice.codes, voice.audio, voice.preview)
            wants += [Want.file(path) for path in paths if path is not None]
        return tuple(wants)


def read_description(path: Path) -> Description:
    """Read a ``bundle.json``. Raises BundleError naming the file or field at fault."""
    try:
        return Description.model_validate(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise BundleError(f"{path}: not found; is this folder a model bundle?") from None
    except (ValidationError, ValueError) as error:
        raise BundleError(f"{path}: {error}") from error


class Bundle:
    """A description, the folder its paths are relative to, and those of its sources."""

    def __init__(
        self, root: Path, description: Description, sources: Mapping[str, Path] | None = None
    ) -> None:
        self.root = root
        self.description = description
        self._folders = {OWN: root, **(sources or {})}

    @classmethod
    def open(cls, root: Path) -> Bundle:
        """Read ``root/bundle.json``, whose parts all lie in ``root``. Raises BundleError naming the
        file or field at fault."""
        return cls(root, read_description(root / "bundle.json"))

    def path(self, path: str) -> Path:
        """A file of the bundle. Raises BundleError if it is missing or lies outside the bundle."""
        source, inner = split_path(path)
        folder = self._folders.get(source)
        if folder is None:
            raise BundleError(f"{path}: the source {source!r} was not fetched")
        # By the letters: files kept in a cache are links to where their content lies.
        if PurePosixPath(inner).is_absolute() or ".." in PurePosixPath(inner).parts:
            raise BundleError(f"{path}: points outside the bundle {self.root}")
        found = folder / inner
        if not found.exists():
            raise BundleError(f"{found}: missing from the bundle")
        return found

    def stage(self, stage: int) -> Path:
        """The folder of CB{stage}: ``config.json`` and safetensors."""
        assert 0 <= stage < STREAMS
        return self.path(self.description.stages[stage])
