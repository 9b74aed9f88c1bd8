"""The Dockerfile and the Space's configuration agree with the repository and with each other."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml

from tontaube.config import Settings

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from dockerfile import Step, parse  # noqa: E402
from space import front_matter, with_front_matter  # noqa: E402

SPACE = (ROOT / "Spaces.yml").read_text("utf-8")


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return parse((ROOT / "Dockerfile").read_text("utf-8"))


def texts(steps: list[Step], kind: str) -> list[str]:
    return [step.text for step in steps if step.kind == kind]


def test_everything_copied_exists_and_nothing_is_forgotten(steps: list[Step]) -> None:
    copied = {name for step in steps if step.kind == "COPY" for name in step.words()[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    assert {"app.py", "api", "tontaube", "requirements.txt"} <= copied
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert copied.isdisjoint(ignored)


def test_it_runs_as_a_user_without_rights(steps: list[Step]) -> None:
    (user,) = texts(steps, "USER")
    assert user != "root"
    assert any(f"--uid 1000 {user}" in text for text in texts(steps, "RUN"))
    kinds = [step.kind for step in steps]
    assert kinds.index("USER") > max(i for i, kind in enumerate(kinds) if kind == "RUN")


def test_its_settings_are_known(steps: list[Step]) -> None:
    variables = {k: v for step in steps if step.kind == "ENV" for k, v in step.variables().items()}
    ours = [name for name in variables if name.startswith("TONTAUBE_")]
    assert {name.removeprefix("TONTAUBE_").lower() for name in ours} <= Settings.model_fields.keys()
    (volumes,) = (step.words() for step in steps if step.kind == "VOLUME")
    assert variables["TONTAUBE_DATA_DIR"] in volumes
    assert "/home/tontaube/.cache/huggingface" in volumes  # the hub's default, and Spaces' place


def test_one_port_everywhere(steps: list[Step]) -> None:
    space = yaml.safe_load(SPACE)
    (port,) = texts(steps, "EXPOSE")
    (health,) = texts(steps, "HEALTHCHECK")
    assert int(port) == space["app_port"]
    assert f":{port}/ready" in health
    (command,) = (step.command() for step in steps if step.kind == "CMD")
    assert command == ["python", space["app_file"]]


def test_preloaded_models_are_pinned() -> None:
    for line in yaml.safe_load(SPACE)["preload_from_hub"]:
        repository, *_, revision = line.split()
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", repository)
        assert re.fullmatch(r"[0-9a-f]{40}|v\d+\.\d+\.\d+", revision)


def test_unknown_steps_are_refused() -> None:
    assert parse("# a comment\nRUN a \\\n    && b\n") == [Step("RUN", "a && b")]
    with pytest.raises(ValueError, match="ADD"):
        parse("ADD x y")


def test_the_readme_says_what_spaces_yml_says() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme == with_front_matter(readme, SPACE), "run python scripts/space.py"
    assert yaml.safe_load(front_matter(SPACE).strip("-\n")) == yaml.safe_load(SPACE)


def test_front_matter_is_replaced_not_repeated() -> None:
    once = with_front_matter("# Title\n", SPACE)
    assert once.startswith("---\ntitle: Tontaube\n") and once.endswith("---\n\n# Title\n")
    assert with_front_matter(once, SPACE) == once
    assert with_front_matter("---\nold: yes\n---\n# Title\n", SPACE) == once
