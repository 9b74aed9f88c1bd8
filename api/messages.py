"""The WebSocket's messages: what a client may say, as checked values."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from api.schemas import Body, Number, Speaking

ContextId = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\x21-\x7e]+$")]


class Start(Speaking):
    """Open a context: one voice that says what is appended to it."""

    type: Literal["start"]
    context: ContextId = "default"
    model: str = Field("tontaube-v1", max_length=200)
    response_format: Literal["pcm"] = "pcm"
    flush_after: Number = Field(
        2.0, ge=0.05, le=60, description="Seconds without new text until the rest is spoken."
    )


class Append(Body):
    """More text, exactly as it is written; it may be cut anywhere."""

    type: Literal["append"]
    context: ContextId = "default"
    text: str


class Flush(Body):
    """Speak what has been written so far; do not wait for the end of its sentence."""

    type: Literal["flush"]
    context: ContextId = "default"


class End(Body):
    """The text is complete: speak the rest, then say ``done``."""

    type: Literal["end"]
    context: ContextId = "default"


class Cancel(Body):
    """Stop at once. ``played_samples`` is what the listener has heard, where the client knows."""

    type: Literal["cancel"]
    context: ContextId = "default"
    played_samples: int | None = Field(None, ge=0)


Message = Annotated[Start | Append | Flush | End | Cancel, Field(discriminator="type")]
MESSAGE: TypeAdapter[Start | Append | Flush | End | Cancel] = TypeAdapter(Message)
