"""Every error code: explained in the document, and in the visitor's language on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import api
from api.documentation import DESCRIPTION
from api.errors import HTTP_CODES

SOURCES = Path(api.__file__).parent
TEXTS = SOURCES / "ui" / "static" / "text"


def codes() -> list[str]:
    """What any ``Problem`` can have as its code."""
    given = re.compile(r'\bcode\s*=\s*"(\w+)"(?: if [^\n]+ else "(\w+)")?')
    found = {
        code
        for path in SOURCES.rglob("*.py")
        for pair in given.findall(path.read_text("utf-8"))
        for code in pair
        if code
    }
    return sorted(found | set(HTTP_CODES.values()))


def test_codes_are_found() -> None:
    assert {"invalid_json", "missing_required_parameter", "server_busy", "not_found"} <= set(
        codes()
    )


@pytest.mark.parametrize("code", codes())
def test_a_code_is_explained(code: str) -> None:
    assert f"`{code}`" in DESCRIPTION


@pytest.mark.parametrize("code", codes())
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_code_has_words(language: str, code: str) -> None:
    words = json.loads((TEXTS / f"{language}.json").read_text("utf-8"))
    assert words[f"error_{code}"].endswith(".")
