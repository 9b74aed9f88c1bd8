"""The tree keeps its promises: imports point one way, files stay readable."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Each room may import from those before it, and from itself.
ORDER = (
    ("types", "errors"),
    ("bundle",),
    ("config", "recordings"),
    ("hub",),
    ("sources",),
    ("text",),
    ("tokens", "numerics", "memory"),
    ("layout", "footprint"),
    ("audio",),
    ("backend", "codec", "voices", "cache"),
    ("stages",),
    ("pipeline",),
    ("plan", "dictation"),
    ("scheduling",),
    ("stream",),
    ("assembly",),
    ("engine", "doctor"),
    ("train", "bench", "__main__"),
)
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
SOURCES = sorted([*(ROOT / "tontaube").rglob("*.py"), *(ROOT / "api").rglob("*.py")])


def imports(path: Path) -> set[str]:
    """Dotted names of everything a file imports, wherever it does."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def room(path: Path) -> str:
    return path.relative_to(ROOT / "tontaube").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted((ROOT / "tontaube").rglob("*.py")), ids=str)
def test_imports_point_one_way(path: Path) -> None:
    here = room(path)
    if here == "__init__":
        return
    for name in imports(path):
        if not name.startswith("tontaube."):
            continue
        there = name.split(".")[1]
        assert RANK[there] < RANK[here] or there == here or RANK[there] == RANK[here], name


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_who_knows_what(path: Path) -> None:
    inside = path.is_relative_to(ROOT / "tontaube")
    known = {name.split(".")[0] for name in imports(path)}
    if inside:
        assert not known & {"fastapi", "starlette", "gradio", "api", "uvicorn"}
    else:
        deep = {name.split(".")[1] for name in imports(path) if name.startswith("tontaube.")}
        assert not deep & {"backend", "codec", "stages", "scheduling", "pipeline", "assembly"}
    if "vllm" in known:
        assert path.is_relative_to(ROOT / "tontaube" / "backend")
    assert not known & {"torchaudio", "torchvision", "torchcodec"}


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_files_stay_readable(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 350
    tree = ast.parse(text)
    if tree.body:
        assert ast.get_docstring(tree), "a module says what it turns into what"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 70, node.name
