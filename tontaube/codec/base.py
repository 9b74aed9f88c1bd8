"""The seam between streaming and codec networks: codes ↔ audio with a finite receptive field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import torch

from tontaube.types import Samples

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Window:
    """Frames of an utterance, in absolute frame numbers: ``start`` is the first one at hand,
    samples are wanted for ``keep_from`` … ``keep_to`` (exclusive); ``final``: the utterance ends
    with this window."""

    start: int
    keep_from: int
    keep_to: int
    final: bool


@dataclass(frozen=True, slots=True)
class Request(Generic[State]):
    """Codes int64 [streams, frames] from ``window.start`` on, and the stream's state before it."""

    codes: torch.Tensor
    window: Window
    state: State


class CodecNetwork(Protocol):
    """Codes ↔ audio with a finite receptive field, so that windows join exactly."""

    sample_rate: int  # Hz
    hop: int  # samples a frame
    streams: int  # code streams it decodes
    left_context: int  # frames a window needs before keep_from
    right_context: int  # frames a window needs after keep_to, unless final

    def encode(self, samples: Samples) -> torch.Tensor:
        """Mono float32 audio at ``sample_rate`` → codes int64 [streams, frames]."""

    def initial_state(self) -> Any:
        """The state of a stream before its first window (a value; None where there is none)."""

    def decode_windows(self, requests: Sequence[Request[Any]]) -> list[tuple[torch.Tensor, Any]]:
        """Windows of several streams → for each the float32 samples of its kept frames, and the
        state for the window that keeps from ``keep_to`` on. Company changes no result."""
