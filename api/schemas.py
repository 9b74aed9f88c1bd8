"""JSON bodies → domain requests: fields we do not know are ignored, those we know are strict."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from api.hints import style_from
from tontaube.errors import InvalidRequest
from tontaube.types import SpeechRequest

MAX_CHARACTERS = 40_000
MAX_BATCH = 32

Number = Annotated[float, Field(allow_inf_nan=False)]


class Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        """Clients send null for what they leave to us."""
        if isinstance(value, dict):
            return {name: entry for name, entry in value.items() if entry is not None}
        return value


class VoiceReference(BaseModel):
    """OpenAI's form for a voice of one's own."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    id: str = Field(min_length=1, max_length=200, description="Its id.")


class Speaking(Body):
    """How to speak: what ``/v1/audio/speech`` and the WebSocket's ``start`` have in common."""

    model: str = Field(
        max_length=200,
        description="`tontaube-v1`, the loaded bundle's id, or an OpenAI name such as `tts-1`.",
    )
    voice: Annotated[str, Field(max_length=200)] | VoiceReference | None = Field(
        None,
        description="A voice of `/v1/audio/voices`, or an OpenAI name as an alias. "
        "Omitted: the bundle's default voice.",
    )
    instructions: str | None = Field(
        None,
        max_length=4_096,
        description="Hints such as “like an audiobook” choose the style; others change nothing.",
    )
    language: str | None = Field(
        None, max_length=40, description="Name or ISO code. Omitted: the voice's."
    )
    style: str | None = Field(None, max_length=40, description="Omitted: the voice's.")
    speed: Number = Field(1.0, ge=0.25, le=4.0, description="Tempo, at the same pitch.")
    temperature: Number | None = Field(
        None, ge=0, le=2, description="Of the semantic stage; 0: always the likeliest."
    )
    top_p: Number | None = Field(None, gt=0, le=1, description="Of the semantic stage.")
    top_k: int | None = Field(None, ge=0, le=100_000, description="Of the semantic stage; 0: all.")
    acoustic_temperature: Number | None = Field(
        None, ge=0, le=2, description="Of the acoustic stages."
    )
    seed: int | None = Field(None, ge=0, lt=2**63, description="Makes the answer repeatable.")
    initial_seconds: Number | None = Field(
        None, ge=0.4, le=6.0, description="Length of the first piece that is emitted."
    )
    normalize: bool = Field(
        True, description="Whether numbers, dates, signs and markup are put into words."
    )

    def request(self, text: str, styles: Sequence[str]) -> SpeechRequest:
        """The domain's request; ``styles`` are those that ``instructions`` may choose from."""
        style = self.style
        if style is None and self.instructions is not None:
            style = style_from(self.instructions, styles)
        return SpeechRequest(
            text=text,
            voice=self.voice.id if isinstance(self.voice, VoiceReference) else self.voice,
            language=self.language,
            style=style,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            acoustic_temperature=self.acoustic_temperature,
            seed=self.seed,
            initial_seconds=self.initial_seconds,
            speed=self.speed,
            normalize=self.normalize,
        )


class SpeechBody(Speaking):
    """Body of `POST /v1/audio/speech`: OpenAI's fields and ours."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "tontaube-v1",
                    "input": "Good morning. The train leaves in ten minutes.",
                    "voice": "alloy",
                    "response_format": "wav",
                },
                {
                    "model": "tts-1",
                    "input": "Once upon a time there was a dove made of clay.",
                    "instructions": "Read it like an audiobook.",
                    "speed": 0.9,
                    "stream_format": "sse",
                },
            ]
        }
    )

    input: str = Field(min_length=1, max_length=MAX_CHARACTERS, description="What to say.")
    response_format: Literal["mp3", "opus", "ogg", "aac", "flac", "wav", "pcm"] = Field(
        "mp3", description="`pcm` is 24 kHz signed 16-bit little-endian mono; `ogg` is `opus`."
    )
    stream_format: Literal["audio", "sse"] = Field(
        "audio", description="`sse`: events with audio in base64, its place in the text, and usage."
    )
    stream: bool = Field(
        True, description="false: the whole file at once, with true sizes in its header."
    )

    @property
    def encoding(self) -> str:
        """A key of ``encoders.FORMATS``."""
        return "opus" if self.response_format == "ogg" else self.response_format


class BatchBody(Body):
    """Body of `POST /v1/audio/speech/batch`: up to 32 items, each answered for itself."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "tontaube-v1",
                    "response_format": "mp3",
                    "items": [
                        {"input": "The first sentence."},
                        {"input": "The second one.", "voice": "nova", "speed": 1.2},
                    ],
                }
            ]
        },
        extra="allow",
    )

    items: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=MAX_BATCH,
        description="Bodies of `/v1/audio/speech`; fields beside `items` are their defaults.",
    )

    def bodies(self) -> list[dict[str, Any]]:
        """Every item with the batch's own fields as defaults."""
        return [{**(self.model_extra or {}), **item} for item in self.items]


def require_speakable(text: str, max_characters: int = MAX_CHARACTERS) -> None:
    """Raises InvalidRequest for text too long or without a letter or digit to be spoken."""
    if len(text) > max_characters:
        raise InvalidRequest(
            f"the text has {len(text)} characters; at most {max_characters} are allowed", "text"
        )
    if not any(unicodedata.category(character)[0] in "LN" for character in text):
        raise InvalidRequest("there is nothing to say: the text has no letter or digit", "text")
