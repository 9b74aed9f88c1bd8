"""Rows of text and codes → the ids, positions and next position of one stage (sections 4.1, 4.2).

Physical order decides what a token can see; the positions decide what is simultaneous. This is
the only place that knows either. Pure: no model, no tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tontaube.tokens import Row, Vocabulary
from tontaube.types import Codes, StageInput


@dataclass(frozen=True, slots=True)
class Rows:
    """What a stage reads, before it is serialized. Codes are plain codes, text is ids.

    The first text segment follows the control block. CB0's own row is ``c0``: its last chunk is
    the one it goes on writing, or, with ``c0_open_boundary``, a chunk closed by
    ``<|audio_split|>`` after which it opens the next. For CB1..CB3 ``c0`` is complete and the row
    they write is ``target``; ``lower`` and ``target`` run through chunks without a marker.
    """

    stage: int
    prompt: Sequence[Row] | Codes  # [stage + 1, P], or empty
    control: Sequence[int]
    text: Sequence[Sequence[int]]  # one a segment
    c0: Sequence[Row] = ()  # one a segment, at most as many as text segments
    c0_open_boundary: bool = False
    lower: Sequence[Row] | Codes = ()  # rows 1..stage-1, each as long as all of c0
    target: Row = ()  # the codes of row `stage` that are known already


def truncate_prompt(codes: Codes, stage: int, frames: Sequence[int]) -> Codes:
    """The part of a reference ``codes`` [streams, T] that stage ``stage`` reads: streams
    0..stage, jointly cut to the first ``frames[stage]`` frames (section 3.4)."""
    return codes[: stage + 1, : frames[stage]]


def lay_out(rows: Rows, vocabulary: Vocabulary) -> StageInput:
    """Serialize ``rows`` for the stage of ``vocabulary``.

    ``next_position`` is where the first code still missing sits. Later ones follow by one unless
    ``target`` ends inside a continuation prefix, whose marker the row would skip: give the whole
    prefix. Raises ValueError for rows that contradict each other.
    """
    _check(rows, vocabulary)
    prompt_frames = len(rows.prompt[0]) if len(rows.prompt) else 0
    starts, markers = _boundaries(rows, prompt_frames + 1, vocabulary.realign_offset)
    writer = _Writer()

    for stream, codes in enumerate(rows.prompt):
        writer.run(vocabulary.code_ids(stream, codes), 1)

    for b, segment in enumerate(rows.text):
        if b:
            writer.run((vocabulary.text_split,), markers[b - 1])
        writer.run((*rows.control, *segment) if b == 0 else segment, starts[b])

    frames: list[int] = []  # the position of every C0 frame
    writer.run((vocabulary.pad,), prompt_frames)
    for b, codes in enumerate(rows.c0):
        if b:
            writer.run((vocabulary.audio_split,), markers[b - 1])
        writer.run(vocabulary.code_ids(0, codes), starts[b])
        frames += range(starts[b], starts[b] + len(codes))
    if rows.c0_open_boundary:
        writer.run((vocabulary.audio_split,), markers[len(rows.c0) - 1])
    next_position = writer.positions[-1] + 1

    if rows.stage > 0:
        writer.run((vocabulary.end_of_speech,), next_position)
        for stream, codes in enumerate(rows.lower, start=1):
            writer.run((vocabulary.pad,), prompt_frames)
            writer.place(vocabulary.code_ids(stream, codes), frames)
        writer.run((vocabulary.pad,), prompt_frames)
        known = len(rows.target)
        writer.place(vocabulary.code_ids(rows.stage, rows.target), frames[:known])
        next_position = frames[known] if known < len(frames) else writer.positions[-1] + 1

    salt = "markers " + " ".join(map(str, markers)) if markers else None
    return StageInput(tuple(writer.ids), tuple(writer.positions), next_position, salt)


class _Writer:
    """The flat sequence as it grows."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []

    def run(self, ids: Sequence[int], start: int) -> None:
        """Append ids at consecutive positions."""
        self.ids += ids
        self.positions += range(start, start + len(ids))

    def place(self, ids: Sequence[int], positions: Sequence[int]) -> None:
        """Append ids at given positions."""
        self.ids += ids
        self.positions += positions


def _boundaries(rows: Rows, first: int, offset: int) -> tuple[list[int], list[int]]:
    """Where each segment starts, and the position between each two of them: S_b and M_b of
    equation 4, M_b = S_b + max(text + offset, frames present)."""
    starts, markers = [first], list[int]()
    for b in range(len(rows.text) - 1):
        text = len(rows.text[b]) + (len(rows.control) if b == 0 else 0)
        frames = len(rows.c0[b]) if b < len(rows.c0) else 0
        markers.append(starts[b] + max(text + offset, frames))
        starts.append(markers[b] + 1)
    return starts, markers


def _check(rows: Rows, vocabulary: Vocabulary) -> None:
    stage, frames = rows.stage, sum(map(len, rows.c0))
    if stage != vocabulary.stage:
        raise ValueError(f"rows of stage {stage} with the vocabulary of {vocabulary.stage}")
    if len(rows.prompt) not in (0, stage + 1) or len(set(map(len, rows.prompt))) > 1:
        raise ValueError(f"the prompt of stage {stage} needs {stage + 1} streams of equal length")
    if not len(rows.text):
        raise ValueError("there is no text segment")
    if len(rows.c0) + rows.c0_open_boundary > len(rows.text):
        raise ValueError("more audio chunks than text segments")
    if rows.c0_open_boundary and (stage > 0 or not rows.c0):
        raise ValueError("only CB0 opens a chunk, and only after another")
    if stage == 0 and (len(rows.lower) or len(rows.target)):
        raise ValueError("CB0 has no rows beside C0")
    if stage > 0 and (len(rows.lower) != stage - 1 or any(len(r) != frames for r in rows.lower)):
        raise ValueError(f"stage {stage} needs {stage - 1} lower rows of {frames} frames")
    if len(rows.target) > frames:
        raise ValueError("the target row is longer than C0")
