"""What every backend asks of a job before it admits it, and how CB0's jobs end."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from tontaube.errors import InvalidRequest
from tontaube.types import StageJob

STOPS = ("end_of_speech", "audio_split")  # CB0's last two head rows


@dataclass(frozen=True, slots=True)
class Limits:
    """What a stage can hold of one job."""

    tokens: int  # its input and its codes
    last_position: int
    vocabulary: int  # ids are below

    def check(self, job: StageJob, running: Container[str]) -> None:
        """Raise InvalidRequest for a job that can never fit, or whose id is ``running``."""
        ids, positions = job.input.ids, job.input.positions
        needed = len(ids) + job.max_codes - 1  # the last code is never read
        if not ids or len(ids) != len(positions) or job.max_codes < 1:
            raise InvalidRequest(f"job {job.id}: nothing to read or nothing to write")
        if needed > self.tokens:
            raise InvalidRequest(
                f"job {job.id} needs {needed} tokens, a sequence has {self.tokens}; "
                "shorten the text or the reference"
            )
        last = max(max(positions), job.input.next_position + job.max_codes - 1)
        if min(positions) < 0 or last > self.last_position:
            raise InvalidRequest(f"job {job.id}: positions must be 0..{self.last_position}")
        if min(ids) < 0 or max(ids) >= self.vocabulary:
            raise InvalidRequest(f"job {job.id}: an id is not in the vocabulary")
        if job.id in running:
            raise InvalidRequest(f"job {job.id} is running already")
