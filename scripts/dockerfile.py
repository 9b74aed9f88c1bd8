"""A Dockerfile's text → its steps. Only what ours uses is understood; anything else is refused."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass

_KNOWN = {
    *("FROM", "ENV", "RUN", "WORKDIR", "COPY", "VOLUME"),
    *("EXPOSE", "USER", "HEALTHCHECK", "CMD"),
}


@dataclass(frozen=True)
class Step:
    """One instruction and what follows it."""

    kind: str
    text: str

    def words(self) -> list[str]:
        """The text as a list: of JSON, or of shell words."""
        if self.text.startswith("["):
            words: list[str] = json.loads(self.text)
            return words
        return shlex.split(self.text)

    def variables(self) -> dict[str, str]:
        """Of an ENV step."""
        return dict(word.split("=", 1) for word in self.words())

    def command(self) -> list[str]:
        """Of a CMD or HEALTHCHECK step, without its options."""
        text = self.text
        if self.kind == "HEALTHCHECK":
            _, _, text = text.partition(" CMD ")
        return Step("CMD", text.strip()).words()


def parse(dockerfile: str) -> list[Step]:
    """Comments are left out, continued lines joined. Raises ValueError for an unknown step."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    steps = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        kind, _, text = line.partition(" ")
        if kind not in _KNOWN:
            raise ValueError(f"the step {kind} is not understood here")
        steps.append(Step(kind, text.strip()))
    return steps
