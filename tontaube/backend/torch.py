"""The torch stage module: StageJobs → their codes, by continuous batching on the CPU.

Jobs join and leave between steps. A step is one pass of the network over one token of every
decoding job and a bounded number of prompt tokens, so that long prompts do not stall the others.
In float32, int8 matrices or not, what a job gets depends on the job alone, to the bit: a row of a
packed product does not depend on the others (see ``linear``), and prompts are cut on a fixed grid.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tontaube.backend.attention import Piece
from tontaube.backend.cached import CachedNetwork, StepBatch
from tontaube.backend.jobs import STOPS, Limits
from tontaube.backend.network import StageNetwork
from tontaube.backend.prefix import PrefixCache, block_keys
from tontaube.backend.sampling import SamplingRows
from tontaube.backend.weights import load_stage
from tontaube.tokens import Vocabulary
from tontaube.types import StageJob, StageOutput

Ints = npt.NDArray[np.int64]

BLOCK = 32  # tokens; prompts are computed and kept in whole blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a stage may use: all memory is taken at the start, none grows."""

    sequences: int = 8  # that run at once; further jobs wait
    tokens: int = 3000  # of one sequence: its input and its codes
    prefill_tokens: int = 128  # of inputs, a step
    prefix_tokens: int = 4096  # of inputs kept for later jobs; 0: none
    positions: int = 8192  # the highest logical position


@dataclass(eq=False, slots=True)
class _Sequence:
    """A job in its slot."""

    job: StageJob
    slot: int
    ids: Ints
    positions: Ints
    keys: list[bytes]  # of its whole blocks, for the prefix cache
    done: int = 0  # input tokens whose keys and values are in memory
    codes: int = 0  # given out


@dataclass(order=True, slots=True)
class _Waiting:
    priority: float
    arrival: int
    job: StageJob = field(compare=False)


class TorchStage:
    """A StageModule (see ``backend.base``) over fixed memory; not thread-safe."""

    def __init__(
        self,
        network: StageNetwork,
        capacity: Capacity | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        int8: bool = False,
    ) -> None:
        """Take ``network``'s weights in ``dtype``, or its matrices in int8."""
        capacity = capacity or Capacity()
        config = network.config
        self.capacity = capacity
        self.prefixes = PrefixCache(capacity.prefix_tokens // BLOCK)
        self._limits = Limits(capacity.tokens, capacity.positions, config.vocab_size)
        self._network = CachedNetwork(
            network,
            slots=capacity.sequences,
            tokens=capacity.tokens,
            max_position=capacity.positions,
            dtype=dtype,
            int8=int8,
        )
        self._head_ids = np.array(Vocabulary(config).head_ids(), np.int64)
        stops = len(STOPS) if config.target_codebook == 0 else 0
        self._codes = config.head_size - stops
        self._sampling = SamplingRows(capacity.sequences, config.head_size, stops, capacity.tokens)
        self._arrivals = count()
        self._waiting: list[_Waiting] = []
        self._sequences: dict[int, _Sequence] = {}  # by slot
        self._slots: dict[str, int] = {}  # by job id
        self._free = list(range(capacity.sequences))
        # the decoding rows of the next step; a slot that does not decode is idle
        self._decoding = np.zeros(capacity.sequences, bool)
        self._ids = np.zeros(capacity.sequences, np.int64)
        self._positions = np.zeros(capacity.sequences, np.int64)
        self._lengths = np.zeros(capacity.sequences, np.int64)

    @classmethod
    def open(
        cls,
        folder: Path,
        capacity: Capacity | None = None,
        dtype: torch.dtype = torch.float32,
        *,
        int8: bool = False,
    ) -> Self:
        """Load a stage's folder. Raises BundleError."""
        return cls(load_stage(folder, dtype=dtype), capacity, dtype=dtype, int8=int8)

    @property
    def running(self) -> int:
        """Jobs added and not yet finished or aborted."""
        return len(self._slots) + len(self._waiting)

    @property
    def free_slots(self) -> int:
        """Sequences that could start at once."""
        return len(self._free)

    def add(self, job: StageJob) -> None:
        """Admit a job; see ``StageModule.add``."""
        waiting = {entry.job.id for entry in self._waiting}
        self._limits.check(job, self._slots.keys() | waiting)
        heapq.heappush(self._waiting, _Waiting(job.priority, next(self._arrivals), job))

    def abort(self, job_id: str) -> None:
        """Forget a job at once; unknown ids are ignored."""
        slot = self._slots.get(job_id)
        if slot is not None:
            self._release(slot)
            return
        self._waiting = [waiting for waiting in self._waiting if waiting.job.id != job_id]
        heapq.heapify(self._waiting)

    @torch.inference_mode()
    def step(self) -> list[StageOutput]:
        """One pass: a code for every job past its prompt, up to ``prefill_tokens`` for the rest."""
        self._seat()
        pieces = self._next_pieces()
        batch = self._batch(pieces)
        if batch is None:
            return []
        hidden = self._network.run(batch)
        rows, slots = self._finish_pieces(pieces, len(batch.lengths))
        if not len(slots):
            return []
        if len(rows) != len(hidden):
            hidden = hidden.index_select(0, torch.from_numpy(rows))
        logits = self._network.logits(hidden)
        return self._give_out(slots, self._sampling.draw(slots, logits))

    def _seat(self) -> None:
        """Give free slots to waiting jobs, the most urgent first, the lowest slot first: a step
        computes all slots up to the last one that decodes."""
        while self._waiting and self._free:
            job = heapq.heappop(self._waiting).job
            slot = heapq.heappop(self._free)
            ids = np.array(job.input.ids, np.int64)
            positions = np.array(job.input.positions, np.int64)
            keys = block_keys(ids, positions, BLOCK) if self.capacity.prefix_tokens else []
            self._sequences[slot] = _Sequence(job, slot, ids, positions, keys)
            self._slots[job.id] = slot
            self._sampling.begin(slot, job)

    def _release(self, slot: int) -> None:
        sequence = self._sequences.pop(slot)
        del self._slots[sequence.job.id]
        self._decoding[slot] = False
        heapq.heappush(self._free, slot)

    def _next_pieces(self) -> tuple[Piece, ...]:
        """The next blocks of the most urgent prompts, without those that are known."""
        prompts = [s for s in self._sequences.values() if not self._decoding[s.slot]]
        pieces: list[Piece] = []
        room = max(self.capacity.prefill_tokens, BLOCK)
        for sequence in sorted(prompts, key=lambda s: s.job.priority):
            self._recall(sequence)
            start = sequence.done
            while start < len(sequence.ids) and room >= BLOCK:
                stop = min(start + BLOCK, len(sequence.ids))
                pieces.append(Piece(sequence.slot, start, stop))
                start = stop
                room -= BLOCK
            if room < BLOCK:
                break
        return tuple(pieces)

    def _recall(self, sequence: _Sequence) -> None:
        """Copy the blocks that come next from the prefix cache, as far as it knows them."""
        for key in sequence.keys[sequence.done // BLOCK :]:
            block = self.prefixes.get(key)
            if block is None:
                return
            stop = sequence.done + BLOCK
            self._network.memory[:, :, sequence.slot, sequence.done : stop] = block
            sequence.done = stop

    def _batch(self, pieces: tuple[Piece, ...]) -> StepBatch | None:
        active = self._decoding.nonzero()[0]
        rows = int(active[-1]) + 1 if len(active) else 0
        if not rows and not pieces:
            return None
        decoding = self._decoding[:rows]
        row_places = np.where(decoding, self._lengths[:rows], self._network.capacity - 1)
        starts = np.arange(self.capacity.sequences) * self._network.capacity
        lengths = np.where(decoding, self._lengths[:rows] + 1, 1)
        ids, positions = [self._ids[:rows]], [self._positions[:rows]]
        places = [starts[:rows] + row_places]
        for piece in pieces:
            sequence = self._sequences[piece.slot]
            ids.append(sequence.ids[piece.start : piece.stop])
            positions.append(sequence.positions[piece.start : piece.stop])
            places.append(starts[piece.slot] + np.arange(piece.start, piece.stop))
        return StepBatch(
            ids=_tensor(ids),
            positions=_tensor(positions),
            places=_tensor(places),
            lengths=torch.from_numpy(lengths),
            longest=int(lengths.max(initial=0)),
            pieces=pieces,
        )

    def _finish_pieces(self, pieces: tuple[Piece, ...], rows: int) -> tuple[Ints, Ints]:
        """Note what the pass has computed; give the rows of its output that lead to codes, and
        their slots."""
        slots = self._decoding.nonzero()[0]
        self._lengths[slots] += 1
        self._positions[slots] += 1
        done = [(int(slot), int(slot)) for slot in slots]
        row = rows
        for piece in pieces:
            row += piece.stop - piece.start
            sequence = self._sequences[piece.slot]
            self._keep(sequence, piece)
            sequence.done = piece.stop
            if piece.stop == len(sequence.ids):
                done.append((row - 1, piece.slot))
                self._decoding[piece.slot] = True
                self._lengths[piece.slot] = piece.stop
                self._positions[piece.slot] = sequence.job.input.next_position
        table = np.array(done, np.int64).reshape(-1, 2)
        return table[:, 0].copy(), table[:, 1].copy()

    def _keep(self, sequence: _Sequence, piece: Piece) -> None:
        block = piece.start // BLOCK
        if block < len(sequence.keys):
            memory = self._network.memory[:, :, piece.slot, piece.start : piece.stop]
            self.prefixes.put(sequence.keys[block], memory.clone())

    def _give_out(self, slots: Ints, codes: Ints) -> list[StageOutput]:
        self._ids[slots] = self._head_ids[codes]
        outputs = []
        for slot, code in zip(slots.tolist(), codes.tolist(), strict=True):
            sequence = self._sequences[slot]
            job = sequence.job
            finish = STOPS[code - self._codes] if code >= self._codes else None
            given = () if finish else (code,)
            sequence.codes += len(given)
            if not finish and sequence.codes == job.max_codes:
                finish = "length"
            if finish:
                self._release(slot)
            outputs.append(StageOutput(job.id, given, finish))
        return outputs


def _tensor(parts: list[Ints]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts))
