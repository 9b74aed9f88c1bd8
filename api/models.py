"""Names of models: the bundle's own, the project's, and OpenAI's as aliases."""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter

from api.errors import ModelNotFound

_ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
_DATED = re.compile(r"(?:tts-1|tts-1-hd|gpt-4o-mini-tts)-\d{4}(?:-?\d\d-?\d\d)?")


class Models:
    """The model names that this server answers to; they all mean the one loaded bundle."""

    def __init__(self, bundle_id: str, created: int) -> None:
        self.ids = list(dict.fromkeys(["tontaube-v1", bundle_id, *_ALIASES]))
        self._created = created

    def serves(self, model: str) -> bool:
        """Whether ``model`` is one of ``ids`` or a dated form of an alias (``tts-1-1106``)."""
        return model in self.ids or _DATED.fullmatch(model) is not None

    def describe(self, model: str) -> dict[str, Any]:
        """OpenAI's model object."""
        return {"id": model, "object": "model", "created": self._created, "owned_by": "tontaube"}

    def router(self) -> APIRouter:
        """``/v1/models`` and ``/v1/models/{id}``."""
        router = APIRouter(prefix="/v1/models", tags=["models"])

        @router.get("", summary="List the model names this server answers to")
        async def list_models() -> dict[str, Any]:
            return {"object": "list", "data": [self.describe(model) for model in self.ids]}

        @router.get("/{model:path}", summary="Describe one model")
        async def get_model(model: str) -> dict[str, Any]:
            if not self.serves(model):
                raise ModelNotFound(model, self.ids)
            return self.describe(model)

        return router
