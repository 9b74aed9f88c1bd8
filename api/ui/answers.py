"""What the page's own routes answer, as typed values."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from api.answers import Answer, VoiceCard


class Defaults(Answer):
    """The bundle's sampling defaults."""

    temperature: float = Field(description="Of the semantic stage.", examples=[0.25])
    top_p: float = Field(description="Of the semantic stage.", examples=[0.95])
    top_k: int = Field(description="Of the semantic stage; 0: all.", examples=[0])
    acoustic_temperature: float = Field(description="Of the acoustic stages.", examples=[0.0])


class Choices(Answer):
    """What can be asked for."""

    model: str = Field(description="The loaded bundle's id.", examples=["tontaube-mini"])
    voices: list[VoiceCard] = Field(description="Those that ship with the bundle come first.")
    shipped: list[str] = Field(description="Ids of the bundle's own voices.", examples=[["anna"]])
    default_voice: str = Field(description="Who speaks if nobody is named.", examples=["anna"])
    languages: dict[str, str] = Field(
        description="Names and their ISO codes.", examples=[{"english": "en"}]
    )
    styles: list[str] = Field(description="Ways to speak.", examples=[["conversational"]])
    defaults: Defaults = Field(description="What a request without settings gets.")
    sample_rate: int = Field(description="In hertz.", examples=[24000])
    max_characters: int = Field(description="The longest text.", examples=[40000])


class Module(Answer):
    """One of CB0..CB3 and the codec; times and batches are of its last steps."""

    name: str = Field(description="`cb0` to `cb3`, `codec`.", examples=["cb0"])
    waiting: int = Field(description="Work not admitted yet.", examples=[0])
    running: int = Field(description="Work being stepped.", examples=[2])
    steps: int = Field(description="Steps made since the start.", examples=[1200])
    step_seconds: float = Field(description="Length of a step (median).", examples=[0.004])
    step_seconds_p99: float = Field(description="… of a slow one (99 %).", examples=[0.009])
    batch: float = Field(description="Sequences in a step, on average.", examples=[1.5])


class RecentStream(Answer):
    """A stream that is over."""

    at: float = Field(description="When it ended, on the server's clock.", examples=[5120.5])
    ago: float = Field(description="Seconds since then.", examples=[12.3])
    outcome: Literal["ok", "failed", "cancelled"] = Field(description="How.", examples=["ok"])
    seconds: float = Field(description="Audio made.", examples=[3.2])
    ttfa: float | None = Field(description="Seconds to its first audio.", examples=[0.15])
    rtf: float | None = Field(
        description="Seconds of work per second of audio; none for dictated text.", examples=[0.2]
    )


class ServerStatus(Answer):
    """How the server is doing."""

    model: str = Field(description="The loaded bundle's id.", examples=["tontaube-mini"])
    revision: str = Field(description="… and its revision.", examples=["2"])
    engine: str = Field(description="`torch` or `vllm`.", examples=["torch"])
    device: str = Field(description="Where the codec computes.", examples=["cpu"])
    ready: bool = Field(description="Whether it can speak.", examples=[True])
    failure: str | None = Field(description="Why it cannot any more.", examples=[None])
    queue_length: int = Field(description="Requests that wait for their turn.", examples=[0])
    active_streams: int = Field(description="Streams being spoken.", examples=[2])
    stream_limit: int = Field(description="… at once, at most.", examples=[16])
    cancellations: int = Field(description="Streams left before their end.", examples=[3])
    underruns: int = Field(description="Times a listener ran dry.", examples=[0])
    emitted_seconds: float = Field(description="Audio made since the start.", examples=[310.5])
    modules: list[Module] = Field(description="The stages and the codec.")
    recent: list[RecentStream] = Field(description="The streams that ended last.")
    position: int | None = Field(
        description="Place in line of the request that was asked about, from 1; 0: it is being "
        "spoken; null: nobody knows it.",
        examples=[None],
    )


class Recording(Answer):
    """What would be used of a recording."""

    seconds: float = Field(description="Length of what is used.", examples=[8.4])
    level: float = Field(description="Loudness, in dB of full scale.", examples=[-22.5])
    peaks: list[float] = Field(
        description="Its outline, 0 to 1, at most 400 values.", examples=[[0.1, 0.4]]
    )
    warnings: list[Literal["short", "cut", "clipped", "noisy", "pauses"]] = Field(
        description="What might make a poor voice of it.", examples=[["short"]]
    )
