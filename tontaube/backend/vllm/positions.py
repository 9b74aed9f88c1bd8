"""A prompt's ids → its logical positions, for an engine that asks with ids alone.

vLLM lets a model say where its tokens are (M-RoPE's interface), but shows it no more of a request
than the ids. The rules of positions stay in ``layout``: what it wrote is kept here while it runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tontaube.errors import InvalidRequest
from tontaube.types import StageInput


class PositionBook:
    """The positions of the prompts in an engine. Not thread-safe."""

    def __init__(self) -> None:
        self._inputs: dict[tuple[int, ...], StageInput] = {}
        self._users: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self._inputs)

    def enter(self, ids: tuple[int, ...], written: StageInput) -> None:
        """Keep the positions of a prompt that goes by ``ids`` in the engine, until ``leave``.

        Raises InvalidRequest for the same ids at other positions, which no layout gives.
        """
        known = self._inputs.setdefault(ids, written)
        if (known.positions, known.next_position) != (written.positions, written.next_position):
            raise InvalidRequest("a prompt with the same ids at other positions is running")
        self._users[ids] = self._users.get(ids, 0) + 1

    def leave(self, ids: tuple[int, ...]) -> None:
        """Forget one job's interest in a prompt."""
        self._users[ids] -= 1
        if not self._users[ids]:
            del self._users[ids], self._inputs[ids]

    def look_up(self, ids: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """The positions of a prompt, and what is added to the index of every later token to give
        its position."""
        written = self._inputs[tuple(ids)]
        return written.positions, written.next_position - len(ids)
