"""C0 → C0..C3. What CB1..CB3 are asked, one after the other, about a piece of a segment.

One question in three uses: the whole of a segment at once, its first piece, or a later piece, for
which the codes known already stand at the beginning of the target row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tontaube.layout import Rows, lay_out
from tontaube.stages.ports import Models
from tontaube.stages.reading import Reading
from tontaube.stages.semantic import Piece
from tontaube.text.segments import boundary_text
from tontaube.types import STREAMS, Codes, Segment, StageJob


def acoustic_job(
    reading: Reading,
    segment: Segment,
    lower: Sequence[Sequence[int]],
    target: Sequence[int],
    job_id: str,
) -> StageJob:
    """The job of CB{k}, k = len(lower), that completes its row.

    ``lower``: C0..C{k-1} of the segment from its first frame, all equally long; ``target``: the
    beginning of Ck that is known. The job gives exactly the missing codes. The first segment of a
    request that continues another sees that one before it, if the stage's context has room.
    """
    stage = len(lower)
    missing = len(lower[0]) - len(target)
    rows = _rows(reading, segment, lower, target)
    vocabulary = reading.grammar.vocabularies[stage]
    written = lay_out(rows, vocabulary)
    if reading.continues is not None and segment.index == 1:
        longer = lay_out(_after(reading, rows), vocabulary)
        if len(longer.ids) + missing <= reading.grammar.description.context_tokens[stage]:
            written = longer
    return StageJob(
        id=job_id,
        input=written,
        max_codes=missing,
        sampling=reading.sampling(stage, segment.index, len(target)),
    )


def _rows(
    reading: Reading, segment: Segment, lower: Sequence[Sequence[int]], target: Sequence[int]
) -> Rows:
    return Rows(
        stage=len(lower),
        prompt=reading.prompt(len(lower)),
        control=reading.control,
        text=[reading.grammar.tokenizer.characters(boundary_text(segment))],
        c0=[lower[0]],
        lower=lower[1:],
        target=target,
    )


def _after(reading: Reading, rows: Rows) -> Rows:
    """``rows`` with what the request continues put before them: a chunk of its own in text and C0,
    without a marker in the rows above (report, appendix A)."""
    assert reading.continues is not None and reading.before is not None
    text = reading.grammar.tokenizer.characters(boundary_text(reading.before))
    before = [row.tolist() for row in reading.continues.codes]
    return replace(
        rows,
        text=[text, *rows.text],
        c0=[before[0], *rows.c0],
        lower=[[*old, *row] for old, row in zip(before[1:], rows.lower, strict=False)],
        target=[*before[rows.stage], *rows.target],
    )


async def refine(
    stream_id: str, reading: Reading, piece: Piece, known: Codes, models: Models, at: float
) -> Codes:
    """The codes [4, frames] of a piece's segment up to the piece's end; ``known`` [4, n] are those
    of the pieces before it. Each stage works for the audio ``at`` seconds into the stream."""
    rows: list[list[int]] = [list(piece.c0)]
    for stage in range(1, STREAMS):
        target = known[stage].tolist()
        if piece.known < len(piece.c0):
            name = f"{stream_id}.{piece.segment.index}.{stage}.{piece.known}"
            job = acoustic_job(reading, piece.segment, rows, target, name)
            run = models.run(stage, job, at)
            try:
                await run.until()
                target += run.codes
            finally:
                run.close()
        rows.append(target)
    return np.array(rows, dtype=np.int64)
