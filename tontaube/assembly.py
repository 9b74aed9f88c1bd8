"""Settings → an opened bundle and the machinery that runs it. Everything heavy is imported here."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from pydantic import ValidationError

from tontaube.backend.base import ClosableStage, StageModule
from tontaube.backend.torch import Capacity, TorchStage
from tontaube.backend.vllm import installation as vllm
from tontaube.backend.vllm.beside import codec_working
from tontaube.backend.vllm.opening import Sizing
from tontaube.backend.vllm.opening import open_stages as open_vllm_stages
from tontaube.bundle import Bundle
from tontaube.codec.base import CodecNetwork
from tontaube.codec.build import SpectralConfig, build_spectral
from tontaube.codec.dac_codec import DacCodec, DacConfig
from tontaube.codec.decoder import Join, StreamDecoder, decode_together
from tontaube.codec.reference import read_reference
from tontaube.codec.spectral_codec import SpectralCodec
from tontaube.codec.tensors import load_tensors
from tontaube.codec.vibevoice import VibeVoice
from tontaube.codec.w2vbert import W2vBertFeatures
from tontaube.config import Settings
from tontaube.errors import BundleError, Unavailable
from tontaube.footprint import stage_parameters
from tontaube.hub import Hub
from tontaube.memory import bound_memory
from tontaube.numerics import int8_weights, stage_device, stage_dtype
from tontaube.scheduling.lanes import DecodeTogether, one_by_one
from tontaube.sources import open_bundle
from tontaube.stages.ports import Decoder
from tontaube.stages.reading import Grammar
from tontaube.tokens import StageConfig, TextTokenizer, Vocabulary
from tontaube.types import STREAMS, Codes, Samples

log = logging.getLogger(__name__)

SMALL = 50_000_000  # parameters of a stage whose steps one thread makes soonest


@dataclass(frozen=True, slots=True)
class Machinery:
    """What an engine runs; tests make their own."""

    kind: str  # torch, vllm …
    device: str
    grammar: Grammar
    stages: Sequence[StageModule]
    encode: Callable[[Samples], Codes]
    new_decoder: Callable[[], Decoder]
    read_reference: Callable[[bytes], Samples]
    decode: DecodeTogether = one_by_one

    def close(self) -> None:
        """Give back what stages hold outside Python's memory."""
        for stage in self.stages:
            if isinstance(stage, ClosableStage):
                stage.close()


def assemble(settings: Settings, hub: Hub | None = None) -> tuple[Bundle, Machinery]:
    """Open the model and load its weights. Raises BundleError, Unavailable."""
    bound_memory()
    bundle = open_bundle(settings.model, settings.parts, hub)
    configs = [StageConfig.read(bundle.stage(stage)) for stage in range(STREAMS)]
    torch.set_num_threads(choose_threads(settings.threads, configs))
    device = choose_device(settings.device)
    kind = choose_engine(settings.engine, device)
    network, join = open_codec(bundle, device)
    return bundle, Machinery(
        kind=kind,
        device=str(device),
        grammar=open_grammar(bundle),
        stages=_open_stages(bundle, settings, kind, device),
        encode=functools.partial(_encode, network),
        new_decoder=lambda: StreamDecoder(network, join),
        decode=_decode,
        read_reference=functools.partial(
            read_reference, sample_rate=bundle.description.sample_rate
        ),
    )


def open_grammar(bundle: Bundle) -> Grammar:
    """The tokenizer and the four vocabularies, checked against each other. Raises BundleError."""
    tokenizer = TextTokenizer.open(bundle.path(bundle.description.tokenizer))
    vocabularies = []
    for stage in range(STREAMS):
        config = StageConfig.read(bundle.stage(stage))
        if config.target_codebook != stage:
            raise BundleError(f"{bundle.stage(stage)}: writes stream {config.target_codebook}")
        tokenizer.check(config)
        vocabularies.append(Vocabulary(config))
    return Grammar(bundle.description, tokenizer, tuple(vocabularies))


def choose_threads(wanted: int, configs: Sequence[StageConfig]) -> int:
    """``wanted``, or if that is 0: one for small stages, since handing round a step of theirs takes
    longer than the step, else as many as torch takes by itself."""
    small = max(stage_parameters(config) for config in configs) < SMALL
    return wanted or (1 if small else torch.get_num_threads())


def choose_engine(wanted: str, device: torch.device) -> str:
    """torch or vllm; ``auto`` is vllm on a CUDA device where it is installed.

    Raises Unavailable, saying what to do, if vllm is wanted and cannot run.
    """
    if wanted == "vllm":
        vllm.check(str(device))
    elif wanted == "auto":
        usable = device.type == "cuda" and vllm.is_usable(str(device))
        return "vllm" if usable else "torch"
    return wanted


def _open_stages(
    bundle: Bundle, settings: Settings, kind: str, codec_device: torch.device
) -> list[StageModule]:
    device = stage_device(settings.engine, codec_device, vllm=kind == "vllm")
    dtype, int8 = stage_dtype(settings.dtype, device), int8_weights(settings.weights, device)
    folders = [bundle.stage(stage) for stage in range(STREAMS)]
    contexts = bundle.description.context_tokens
    if kind == "vllm":
        if int8:
            raise Unavailable("int8 weights are for the torch engine: TONTAUBE_WEIGHTS=full")
        working = codec_working(bundle.description)
        sizing = Sizing(contexts, settings.max_batch, working, settings.profile)
        return open_vllm_stages(folders, sizing, dtype, device)
    stages: list[StageModule] = []
    for stage, (folder, tokens) in enumerate(zip(folders, contexts, strict=True)):
        capacity = Capacity(sequences=settings.max_batch, tokens=tokens)
        stages.append(TorchStage.open(folder, capacity, dtype, int8=int8))
        log.info("cb%d: %s%s on cpu", stage, dtype, ", int8 weights" if int8 else "")
    return stages


def choose_device(wanted: str) -> torch.device:
    """Where the model runs. Raises Unavailable for a device that is not there."""
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise Unavailable(f"device {wanted!r} cannot be used: {error}") from error
    return device


def open_codec(bundle: Bundle, device: torch.device) -> tuple[CodecNetwork, Join]:
    """The codec network and how its windows are joined. Raises BundleError."""
    part = bundle.description.codec
    weights = bundle.path(part.weights)
    network: CodecNetwork
    try:
        if part.kind == "spectral":
            spectral = build_spectral(SpectralConfig.model_validate(part.config))
            load_tensors(spectral, weights)
            network = SpectralCodec(spectral, STREAMS)
        else:
            features = None
            if part.features_path is not None and part.features_stats is not None:
                paths = bundle.path(part.features_path), bundle.path(part.features_stats)
                features = W2vBertFeatures.load(*paths, device=device)
            config = DacConfig.model_validate(part.config)
            network = DacCodec.load(weights, config, STREAMS, features=features, device=device)
    except ValidationError as error:
        raise BundleError(f"codec.config: {error}") from error
    join = bundle.description.join
    if join.kind == "exact":
        return network, Join()
    if join.path is None:
        raise BundleError("join: vibevoice needs the path of its tokenizer")
    withheld = bundle.description.streaming.withheld_frames
    return network, Join(VibeVoice.load(bundle.path(join.path), device=device), withheld)


def _decode(works: Sequence[tuple[Decoder, Codes | None]]) -> list[Samples]:
    """Streams of the codec together; a decoder of another kind makes all of them go alone."""
    streams = [(d, codes) for d, codes in works if isinstance(d, StreamDecoder)]
    return decode_together(streams) if len(streams) == len(works) else one_by_one(works)


def _encode(network: CodecNetwork, samples: Samples) -> Codes:
    codes: Codes = network.encode(samples).cpu().numpy()
    return codes
