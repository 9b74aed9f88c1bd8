"""Everything Tontaube raises on purpose. One table in ``api`` turns it into HTTP.

TontaubeError
├── InvalidRequest     a value in the request is wrong: names the field and the fix
│   └── UnknownVoice   the voice is not there: lists those that are
├── Busy               no room in the queue: says when to retry
├── DeadlineExceeded   the request waited or ran too long
├── GenerationFailed   the model gave nothing usable after all its tries
├── BundleError        files of a model bundle are missing, damaged or do not fit together
└── Unavailable        a capability is not installed or not there on this machine
"""

from __future__ import annotations


class TontaubeError(Exception):
    """Base class; ``str(error)`` is a sentence that can be shown to a client."""


class InvalidRequest(TontaubeError):
    """A request cannot be served as it is; ``field`` names what to change."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class UnknownVoice(InvalidRequest):
    """The request names a voice that does not exist."""

    def __init__(self, voice: str, known: list[str]) -> None:
        super().__init__(f"unknown voice {voice!r}; choose one of: {', '.join(known)}", "voice")


class Busy(TontaubeError):
    """The waiting room is full; try again after ``retry_after`` seconds."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DeadlineExceeded(TontaubeError):
    """The request took longer than it may."""


class GenerationFailed(TontaubeError):
    """No try passed the quality checks; the text or the voice does not suit the model."""


class BundleError(TontaubeError):
    """A model bundle cannot be used; the message names the file or tensor and the fix."""


class Unavailable(TontaubeError):
    """A capability is missing here; the message says what to install or change."""
