"""Settings: their sources, and what is refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tontaube.config import Settings


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONTAUBE_PORT", "9000")
    monkeypatch.setenv("TONTAUBE_CORS", "https://a.example, https://b.example")
    monkeypatch.setenv("TONTAUBE_API_KEY", "secret")
    settings = Settings(host="0.0.0.0")
    assert (settings.host, settings.port) == ("0.0.0.0", 9000)
    assert settings.cors == ("https://a.example", "https://b.example")
    assert settings.api_key is not None and settings.api_key.get_secret_value() == "secret"
    assert "secret" not in settings.describe()
    with pytest.raises(ValidationError):
        settings.port = 1  # type: ignore[misc]


def test_unknown_names_and_bad_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError, match="prot"):
        Settings(prot=1)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="max_streams"):
        Settings(max_streams=0)
    monkeypatch.setenv("TONTAUBE_API_KEY", "secret")
    monkeypatch.setenv("TONTAUBE_PROT", "1")
    with pytest.raises(ValidationError, match="did you mean TONTAUBE_PORT") as raised:
        Settings()
    assert "secret" not in str(raised.value)
