"""The environment and given values → one frozen ``Settings``; nothing else reads the environment.

Every field can be set by ``TONTAUBE_<NAME>``; an unknown ``TONTAUBE_`` name fails, as an unknown
argument does.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from tontaube.bundle import MINI

_PREFIX = "TONTAUBE_"


class Settings(BaseSettings):
    """What the operator decides. Times are in seconds, sizes in the unit their name ends in."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        frozen=True,
        extra="forbid",
        env_ignore_empty=True,
        hide_input_in_errors=True,  # it may hold a key
    )

    # The model and where it runs
    model: str = Field(str(MINI), description="a bundle's folder, or a model hub id")
    parts: dict[str, str] = Field(
        {}, description="sources of the model taken from elsewhere, and voices: a folder of them"
    )
    engine: Literal["auto", "torch", "vllm"] = "auto"
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps …")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    weights: Literal["full", "int8"] = Field(
        "full", description="int8: the stages' matrices in a quarter of the room, on the CPU"
    )
    profile: str = Field("auto", description="capacity profile of the vllm engine")
    threads: int = Field(0, ge=0, description="CPU threads of a model step; 0: 1 for a small model")
    max_batch: int = Field(16, ge=1, le=1024, description="sequences a stage steps together")
    warm_up: bool = Field(True, description="synthesize once before saying ready")

    # The server
    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65_535)
    data_dir: Path = Path.home() / ".local" / "share" / "tontaube"
    api_key: SecretStr | None = None
    cors: Annotated[tuple[str, ...], NoDecode] = ()
    requests_per_minute: int = Field(0, ge=0, description="per client; 0: no limit")
    ui: bool = Field(True, description="serve the page")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_text: bool = Field(False, description="write what is spoken to the log")

    # Limits
    max_characters: int = Field(40_000, ge=1)
    max_reference_bytes: int = Field(10 * 2**20, ge=1)
    max_voices: int = Field(1000, ge=0, description="uploaded voices kept on disk")
    max_streams: int = Field(16, ge=1, description="streams that may be spoken at once")
    adjust_streams: bool = Field(True, description="speak fewer at once where steps take too long")
    waiting_room: int = Field(64, ge=0, description="requests that may wait for their turn")
    wait_timeout: float = Field(60.0, gt=0, description="longest wait for one's turn")
    progress_timeout: float = Field(60.0, gt=0, description="longest time without new audio")
    reader_timeout: float = Field(120.0, gt=0, description="longest stall of a reader")
    text_timeout: float = Field(60.0, gt=0, description="longest wait for more text")
    ahead_seconds: float = Field(120.0, gt=0, description="audio made ahead of a reader at most")
    voice_cache: int = Field(256, ge=1, description="uploaded voices kept in memory")
    phrase_cache_bytes: int = Field(64 * 2**20, ge=0, description="0: off")

    # Speech
    initial_seconds: float | None = Field(None, ge=0.4, le=6.0, description="None: the bundle's")
    tries: int | None = Field(None, ge=1, le=20, description="of a text chunk; None: the bundle's")
    trim_silence: bool = True
    trailing_silence: bool = True

    @field_validator("cors", mode="before")
    @classmethod
    def _split_origins(cls, value: object) -> object:
        """``TONTAUBE_CORS=https://a.example,https://b.example``."""
        if isinstance(value, str):
            return tuple(origin.strip() for origin in value.split(",") if origin.strip())
        return value

    @model_validator(mode="after")
    def _refuse_unknown_variables(self) -> Self:
        known = {_PREFIX + name.upper() for name in type(self).model_fields}
        for name in sorted(os.environ):
            if name.upper().startswith(_PREFIX) and name.upper() not in known:
                close = difflib.get_close_matches(name.upper(), sorted(known), 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise ValueError(f"unknown setting {name} in the environment{hint}")
        return self

    def describe(self) -> str:
        """One line for the log, secrets masked."""
        return " ".join(f"{name}={value}" for name, value in self)
