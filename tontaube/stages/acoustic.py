"""C0 → C0..C3. What CB1..CB3 are asked, one after the other, about a piece of a segment.

One question in three uses: the whole of a segment at once, its first piece, or a later piece, for
which the codes known already stand at the beginning of the target row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tontaube.layout import Rows, lay_out
from tontaube.stages.ports import Models
from tontaube.stages.reading import Reading
from tontaube.stages.semantic import Piece
from tontaube.text import boundary_text
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
    beginning of Ck that is known. The job gives exactly the missing codes.
    """
    stage = len(lower)
    grammar = reading.grammar
    rows = Rows(
        stage=stage,
        prompt=reading.prompt(stage),
        control=reading.control,
        text=[grammar.tokenizer.characters(boundary_text(segment))],
        c0=[lower[0]],
        lower=lower[1:],
        target=target,
    )
    return StageJob(
        id=job_id,
        input=lay_out(rows, grammar.vocabularies[stage]),
        max_codes=len(lower[0]) - len(target),
        sampling=reading.sampling(stage, segment.index, len(target)),
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
