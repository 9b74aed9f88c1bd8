"""README's snippets, run as they stand against the real application."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path

import av
import pytest

from tests.served import served
from tontaube.config import Settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
ADDRESS = "127.0.0.1:8000"


def snippets(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), port=0, ui=False, threads=1)
    with served(settings) as url:
        yield url.removeprefix("http://")


def run(command: list[str], folder: Path) -> None:
    path = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "SDL_AUDIODRIVER": "dummy"}
    result = subprocess.run(
        command, cwd=folder, env={**os.environ, **path}, capture_output=True, timeout=300
    )
    assert result.returncode == 0, result.stderr.decode()


@pytest.mark.parametrize("snippet", snippets("python"))
def test_python(snippet: str, address: str, tmp_path: Path) -> None:
    run([sys.executable, "-c", snippet.replace(ADDRESS, address)], tmp_path)
    with av.open(str(tmp_path / "speech.wav")) as container:
        assert sum(frame.samples for frame in container.decode(audio=0)) > 12_000


@pytest.mark.parametrize("snippet", snippets("bash"))
def test_shell(snippet: str, address: str, tmp_path: Path) -> None:
    for program in ("curl", "ffplay"):
        if program in snippet and shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    python = f"{sys.executable} -m"
    run(["bash", "-ec", snippet.replace(ADDRESS, address).replace("python -m", python)], tmp_path)
    written = [path for path in tmp_path.iterdir() if path.suffix in (".mp3", ".wav")]
    with av.open(str(written[0])) as container:
        assert sum(frame.samples for frame in container.decode(audio=0)) > 12_000


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("snippet", snippets("js"))
def test_javascript(snippet: str, address: str, tmp_path: Path) -> None:
    run(["node", "--input-type=module", "-e", snippet.replace(ADDRESS, address)], tmp_path)


def test_say_writes_a_true_wav(tmp_path: Path) -> None:
    run([sys.executable, "-m", "tontaube", "say", "Yes.", "-o", "yes.wav"], tmp_path)
    with wave.open(str(tmp_path / "yes.wav")) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        assert file.getnframes() > 6_000


def test_both_commands_are_there() -> None:
    commands = [line for block in snippets("sh") for line in block.splitlines()]
    assert "pip install -r requirements.txt && python app.py" in commands
    assert "pip install -r requirements.txt -r requirements-dev.txt && pytest" in commands
