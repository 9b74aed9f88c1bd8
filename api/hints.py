"""Free-form ``instructions`` → a speaking style of the bundle, where the words point to one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

_HINTS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "audiobook": re.compile(
            r"audio\s?book|narrat|stor(?:y|ies)|novel|read(?:ing)? aloud|bedtime|literary"
            r"|documentar|dramatic|chapter|fairy\s?tale",
            re.IGNORECASE,
        ),
        "conversational": re.compile(
            r"conversation|casual|chat|friend|relaxed|informal|natural|warm|everyday|podcast"
            r"|laid[- ]back|small talk",
            re.IGNORECASE,
        ),
        "agentic": re.compile(
            r"agentic|assistant|\bagent|customer|support|service|help\s?desk|call cent|professional"
            r"|concise|announce|receptionist|voice\s?bot|\bivr\b",
            re.IGNORECASE,
        ),
    }
)


def style_from(instructions: str, styles: Sequence[str]) -> str | None:
    """The style of ``styles`` that most of the words hint at; None if none does."""
    scores = {
        style: len(_HINTS[style].findall(instructions)) for style in styles if style in _HINTS
    }
    best = max(scores, key=lambda style: scores[style], default=None)
    return best if best is not None and scores[best] > 0 else None
