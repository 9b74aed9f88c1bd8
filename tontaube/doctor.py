"""Settings → what would be loaded and whether it fits, before anything heavy is: files, shapes by
their headers, ids against the tokenizer, memory against the device, versions."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tontaube.assembly import choose_device, choose_engine, open_grammar
from tontaube.backend.network import StageNetwork
from tontaube.backend.vllm.beside import codec_working
from tontaube.backend.vllm.capacity import GIB, Beside, Memory, StageSize, plan
from tontaube.bundle import Bundle, Description, Source
from tontaube.codec.build import SpectralConfig, build_spectral
from tontaube.codec.dac_codec import DacConfig, build_dac
from tontaube.codec.tensors import find_tensors
from tontaube.codec.vibevoice import empty_vibevoice
from tontaube.codec.w2vbert import empty_w2vbert, read_statistics, w2vbert_name
from tontaube.config import Settings
from tontaube.errors import TontaubeError
from tontaube.footprint import Footprint, Storage, codec_footprint, stages_footprint
from tontaube.hub import Hub, size
from tontaube.numerics import int8_weights, stage_device, stage_dtype
from tontaube.sources import Part, open_bundle, survey
from tontaube.tokens import StageConfig
from tontaube.types import STREAMS

_PACKAGES = ("torch", "transformers", "huggingface_hub", "safetensors", "tokenizers", "numpy", "av")
_OPTIONAL = ("vllm", "hf_xet")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    topic: str
    text: str
    problem: bool = False

    def __str__(self) -> str:
        return f"{'✗' if self.problem else '✓'} {self.topic:<10} {self.text}"


def examine(
    settings: Settings, hub: Hub | None = None, *, fetch: bool = False
) -> Iterator[Finding]:
    """The plan, then what was checked, as it is found. Weights are never read.

    With ``fetch`` what is not here yet is fetched; otherwise it is listed and left unchecked.
    """
    hub = hub or Hub()
    yield from _versions()
    try:
        description, parts, _ = survey(settings.model, settings.parts, hub)
        yield Finding("model", f"{description.id} {description.revision}, {description.license}")
        absent = 0
        for part in parts:
            text, missing = _origin(part, hub)
            absent += missing
            yield Finding("files", text)
        if absent and not fetch:
            room = hub.free(hub.cache)
            text = f"{size(absent)} to fetch into {hub.cache}, room for {size(room)}"
            yield Finding("disk", text, problem=absent > room)
            yield Finding("next", "shapes and ids are checked once they are here: doctor --fetch")
            return
        bundle = open_bundle(settings.model, settings.parts, hub)
    except TontaubeError as error:
        yield Finding("files", str(error), problem=True)
        return
    networks: list[Network] = []
    for check in (_stages, _codec, _join, _voices):
        yield from _guarded(check, bundle, networks)
    yield from _guarded(_ids, bundle, networks)
    yield from _memory(settings, bundle.description, networks)


@dataclass(frozen=True, slots=True)
class Network:
    """What was found of a network: its parameters, and a stage's sizes."""

    parameters: int
    stage: StageConfig | None = None


def _versions() -> Iterator[Finding]:
    yield Finding("python", f"{platform.python_version()} on {platform.machine()}")
    for names, wanted in ((_PACKAGES, True), (_OPTIONAL, False)):
        found, missing = [], []
        for name in names:
            try:
                found.append(f"{name} {importlib.metadata.version(name)}")
            except importlib.metadata.PackageNotFoundError:
                missing.append(name)
        if found:
            yield Finding("packages", ", ".join(found))
        if missing and wanted:
            hint = "pip install -r requirements.txt"
            yield Finding("packages", f"{', '.join(missing)} missing: {hint}", problem=True)


def _origin(part: Part, hub: Hub) -> tuple[str, int]:
    """Where a source comes from, and the bytes to fetch. Raises BundleError."""
    if not isinstance(part.place, Source):
        return f"{part.name}: the folder {part.place}", 0
    name = f"{part.name}: {part.place.repo}@{part.place.revision}"
    if hub.kept(part.place, part.wants) is not None:
        return f"{name}, kept in {hub.cache}", 0
    _, fetch = hub.missing(part.place, part.wants)
    return f"{name}, {len(fetch.sizes)} files to fetch, {size(fetch.total)}", fetch.total


Check = Callable[[Bundle, list[Network]], Iterator[Finding]]


def _guarded(check: Check, bundle: Bundle, networks: list[Network]) -> Iterator[Finding]:
    """A check's findings; what it raises is one more."""
    try:
        yield from check(bundle, networks)
    except (TontaubeError, ValueError) as error:
        yield Finding(check.__name__.lstrip("_"), str(error), problem=True)


def _stages(bundle: Bundle, networks: list[Network]) -> Iterator[Finding]:
    for stage in range(STREAMS):
        folder = bundle.stage(stage)
        config = StageConfig.read(folder)
        with torch.device("meta"):
            network = StageNetwork(config)
        text = _fits(f"cb{stage}", network, folder, networks, stage=config)
        sizes = f"{config.num_hidden_layers} blocks, width {config.hidden_size}"
        yield Finding("shapes", f"{text}; {sizes}, {config.head_size} outputs")


def _codec(bundle: Bundle, networks: list[Network]) -> Iterator[Finding]:
    part = bundle.description.codec
    with torch.device("meta"):
        network: nn.Module = (
            build_spectral(SpectralConfig.model_validate(part.config))
            if part.kind == "spectral"
            else build_dac(DacConfig.model_validate(part.config))
        )
    yield Finding("shapes", _fits("codec", network, bundle.path(part.weights), networks))
    if part.features_path is None or part.features_stats is None:
        return
    folder = bundle.path(part.features_path)
    model, _ = empty_w2vbert(folder)
    text = _fits("w2v-BERT", model, folder, networks, rename=w2vbert_name)
    read_statistics(bundle.path(part.features_stats), model.config.hidden_size)
    yield Finding("shapes", f"{text}; {model.config.num_hidden_layers} layers are used")


def _join(bundle: Bundle, networks: list[Network]) -> Iterator[Finding]:
    path = bundle.description.join.path
    if path is not None:
        model, rename = empty_vibevoice(bundle.path(path))
        yield Finding(
            "shapes", _fits("VibeVoice", model, bundle.path(path), networks, rename=rename)
        )


def _voices(bundle: Bundle, networks: list[Network]) -> Iterator[Finding]:
    voices = bundle.description.voices
    for voice in voices:
        for path in (voice.codes, voice.audio, voice.preview):
            if path is not None:
                bundle.path(path)
    yield Finding("voices", ", ".join(voice.name for voice in voices))


def _ids(bundle: Bundle, networks: list[Network]) -> Iterator[Finding]:
    grammar = open_grammar(bundle)
    control = grammar.tokenizer.control
    for language in bundle.description.languages:
        for style in bundle.description.styles:
            control(language, style)
    vocabulary = grammar.vocabularies[0]
    ids = f"pad {vocabulary.pad}, end of speech {vocabulary.end_of_speech}, codes from"
    yield Finding("ids", f"tokenizer and stages agree: {ids} {vocabulary.starts[0]}")


def _fits(
    name: str,
    network: Any,
    path: Path,
    networks: list[Network],
    *,
    rename: Callable[[str], str | None] = str,
    stage: StageConfig | None = None,
) -> str:
    """Compare a network on the meta device with files. Raises BundleError."""
    find_tensors(network, path, rename=rename)
    count = sum(tensor.numel() for tensor in network.state_dict().values())
    networks.append(Network(count, stage))
    return f"{name}: {count:,} parameters, every tensor is there"


def _memory(
    settings: Settings, description: Description, networks: list[Network]
) -> Iterator[Finding]:
    """What the stages and the codec take, against what their devices have free."""
    try:
        device = choose_device(settings.device)
        engine = choose_engine(settings.engine, device)
        place = stage_device(settings.engine, device, vllm=engine == "vllm")
        storage = Storage(
            stage_dtype(settings.dtype, place),
            int8_weights(settings.weights, place),
            settings.max_batch,
        )
    except TontaubeError as error:
        yield Finding("memory", str(error), problem=True)
        return
    configs = [network.stage for network in networks if network.stage is not None]
    stages = stages_footprint(configs, description.context_tokens, storage)
    codec = codec_footprint(sum(n.parameters for n in networks if n.stage is None))
    how = f"{storage.dtype}{', int8 weights' if storage.int8 else ''}"
    yield Finding("engine", f"{engine}: stages in {how} on {place}, codec in float32 on {device}")
    if engine == "vllm":
        contexts = [description.context_tokens[config.target_codebook] for config in configs]
        sizes = [
            StageSize.of(config, context, storage.dtype)
            for config, context in zip(configs, contexts, strict=True)
        ]
        beside = Beside(codec.weights, codec_working(description))
        yield divide(settings, sizes, beside, Memory.of(device), on_gpu=device.type == "cuda")
    elif place == device:
        yield weigh(f"all on {device}", stages + codec, _free_memory(device))
    else:
        yield weigh(f"stages on {place}", stages, _free_memory(place))
        yield weigh(f"codec on {device}", codec, _free_memory(device))


def divide(
    settings: Settings, sizes: list[StageSize], beside: Beside, memory: Memory, *, on_gpu: bool
) -> Finding:
    """How many streams vLLM will have room for, by its own plan, behind a codec that is loaded."""
    left = Memory(max(0, memory.free - beside.loaded), memory.total)
    try:
        capacities = plan(
            sizes,
            left,
            beside,
            profile=settings.profile,
            sequences=settings.max_batch,
            on_gpu=on_gpu,
        )
    except TontaubeError as error:
        return Finding("memory", str(error), problem=True)
    streams = min((capacity.sequences for capacity in capacities), default=0)
    cache = sum(capacity.kv_bytes for capacity in capacities)
    text = f"{streams} streams at once, {size(cache)} of keys and values"
    return Finding("memory", f"{text}; {memory.free / GIB:.1f} GiB were free")


def weigh(what: str, footprint: Footprint, free: int | None) -> Finding:
    """What is needed beside the bytes that are free, where those can be told."""
    text = f"{what}: {size(footprint.weights)} of weights"
    if footprint.cache:
        text += f", {size(footprint.cache)} of keys and values"
    if free is None:
        return Finding("memory", text)
    text += f"; {size(footprint.need)} with what comes on top, {size(free)} are free"
    short = footprint.need > free
    hint = "; lower TONTAUBE_MAX_BATCH or choose another device" if short else ""
    return Finding("memory", text + hint, problem=short)


def _free_memory(device: torch.device) -> int | None:
    """Bytes; None where it cannot be told."""
    try:
        return Memory.of(device).free
    except (AttributeError, ValueError):  # a system without sysconf, or without these figures
        return None
