"""What routes answer, as typed values: they check the answers and describe them to OpenAPI."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(description="Safe in paths and headers.", examples=["anna"])]


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Complaint(Answer):
    """What went wrong, as OpenAI says it."""

    message: str = Field(description="A sentence for people.")
    type: str = Field(
        description="`invalid_request_error`, `authentication_error`, `rate_limit_error`, "
        "`generation_error` or `server_error`."
    )
    param: str | None = Field(description="The field that is wrong, if one is.")
    code: str | None = Field(description="A word for programs, such as `voice_not_found`.")


class Error(Answer):
    """Every error, of whatever kind."""

    error: Complaint = Field(description="What went wrong.")


class Fine(Answer):
    """Nothing is wrong."""

    status: Literal["ok"] = Field(description="Always `ok`.", examples=["ok"])


class Ready(Answer):
    """The server can speak."""

    status: Literal["ready"] = Field(description="Always `ready`.", examples=["ready"])
    model: str = Field(description="The loaded bundle's id.", examples=["tontaube-mini"])


class ModelCard(Answer):
    """OpenAI's model object."""

    id: str = Field(description="A name that requests may use.", examples=["tts-1"])
    object: Literal["model"] = Field(description="Always `model`.", examples=["model"])
    created: int = Field(description="When the server started (Unix time).", examples=[1764495000])
    owned_by: str = Field(description="Always `tontaube`.", examples=["tontaube"])


class ModelCards(Answer):
    """OpenAI's list of models."""

    object: Literal["list"] = Field(description="Always `list`.", examples=["list"])
    data: list[ModelCard] = Field(description="All of them mean the one loaded bundle.")


class VoiceCard(Answer):
    """A voice that can be asked for."""

    id: Id
    name: str = Field(description="For people; can be asked for as well.", examples=["Anna"])
    language: str = Field(description="What it speaks by default.", examples=["english"])
    style: str = Field(description="How it speaks by default.", examples=["conversational"])
    preview_url: str | None = Field(
        description="Path of a recording of it, if there is one.",
        examples=["/v1/audio/voices/anna/preview"],
    )


class VoiceCards(Answer):
    """All voices, the bundle's first."""

    voices: list[VoiceCard] = Field(description="Those that ship with the bundle come first.")


class NewVoice(VoiceCard):
    """A voice that was made of a recording."""

    object: Literal["audio.voice"] = Field(
        description="Always `audio.voice`.", examples=["audio.voice"]
    )


class DeletedVoice(Answer):
    """A voice that is gone."""

    id: Id
    deleted: Literal[True] = Field(description="Always true.", examples=[True])
    object: Literal["audio.voice.deleted"] = Field(
        description="Always `audio.voice.deleted`.", examples=["audio.voice.deleted"]
    )


class Usage(Answer):
    """OpenAI's token counts."""

    input_tokens: int = Field(description="Characters read.", examples=[12])
    output_tokens: int = Field(description="Codes written.", examples=[60])
    total_tokens: int = Field(description="Their sum.", examples=[72])


class BatchAnswer(Answer):
    """One item's file, or its own error."""

    index: int = Field(description="The item's place in the batch, from 0.", examples=[0])
    audio: str | None = Field(None, description="The file, in base64.", examples=["UklGR…"])
    response_format: str | None = Field(None, description="The file's format.", examples=["wav"])
    voice: str | None = Field(None, description="The id of who spoke.", examples=["anna"])
    duration: float | None = Field(None, description="Seconds of audio.", examples=[1.28])
    sample_rate: int | None = Field(None, description="In hertz.", examples=[24000])
    usage: Usage | None = Field(None, description="Token counts.")
    error: Complaint | None = Field(None, description="Why there is no file.")


class BatchAnswers(Answer):
    """For every item, in order, a file or an error."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "object": "list",
                    "data": [
                        {
                            "index": 0,
                            "audio": "UklGR…",
                            "response_format": "wav",
                            "voice": "anna",
                            "duration": 1.28,
                            "sample_rate": 24000,
                            "usage": {"input_tokens": 12, "output_tokens": 60, "total_tokens": 72},
                        },
                        {
                            "index": 1,
                            "error": {
                                "message": "speed: Input should be less than or equal to 4",
                                "type": "invalid_request_error",
                                "param": "speed",
                                "code": "invalid_value",
                            },
                        },
                    ],
                }
            ]
        }
    )

    object: Literal["list"] = Field(description="Always `list`.", examples=["list"])
    data: list[BatchAnswer] = Field(description="In the order of the items.")
