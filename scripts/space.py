"""``Spaces.yml`` → the front matter of ``README.md``, which the hub reads.

``python scripts/space.py`` writes it; ``--check`` only says whether it is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
_FENCE = "---\n"


def front_matter(settings: str) -> str:
    """The configuration as it stands at the top of a README: without its comments."""
    lines = [line for line in settings.splitlines() if not line.startswith("#")]
    return _FENCE + "\n".join(lines).strip() + "\n" + _FENCE


def with_front_matter(readme: str, settings: str) -> str:
    """``readme`` with its front matter replaced, or put there."""
    body = readme
    if readme.startswith(_FENCE):
        _, _, body = readme.removeprefix(_FENCE).partition(_FENCE)
    return front_matter(settings) + "\n" + body.lstrip("\n")


def main() -> int:
    """0 if the README is (now) up to date."""
    path = ROOT / "README.md"
    readme = path.read_text("utf-8") if path.exists() else ""
    wanted = with_front_matter(readme, (ROOT / "Spaces.yml").read_text("utf-8"))
    if readme == wanted:
        return 0
    if "--check" in sys.argv[1:]:
        print("README.md is behind Spaces.yml: python scripts/space.py", file=sys.stderr)
        return 1
    path.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
