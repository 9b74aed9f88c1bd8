"""Names of models: the bundle's own, the project's, and OpenAI's as aliases."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Path

from api.answers import ModelCard, ModelCards
from api.documentation import errors
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

    def describe(self, model: str) -> ModelCard:
        """OpenAI's model object."""
        return ModelCard(id=model, object="model", created=self._created, owned_by="tontaube")

    def router(self) -> APIRouter:
        """``/v1/models`` and ``/v1/models/{id}``."""
        router = APIRouter(prefix="/v1/models", tags=["models"])

        @router.get("", summary="List the models", responses=errors(401))
        async def list_models() -> ModelCards:
            """The names this server answers to; all of them mean the one loaded bundle."""
            return ModelCards(object="list", data=[self.describe(model) for model in self.ids])

        @router.get("/{model:path}", summary="Describe one model", responses=errors(401, 404))
        async def get_model(
            model: Annotated[
                str, Path(description="One of `/v1/models`, or a dated form.", examples=["tts-1"])
            ],
        ) -> ModelCard:
            """Its name is known, or the answer is 404 with those that are."""
            if not self.serves(model):
                raise ModelNotFound(model, self.ids)
            return self.describe(model)

        return router
