"""The vLLM stage module: StageJobs → their codes, by an engine that the scheduler steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import torch
from vllm.exceptions import VLLMClientError
from vllm.inputs import tokens_input

from tontaube.backend.jobs import STOPS, Limits
from tontaube.backend.vllm.capacity import Capacity
from tontaube.backend.vllm.counters import EngineCounters
from tontaube.backend.vllm.engine import open_engine
from tontaube.backend.vllm.ids import EngineIds
from tontaube.backend.vllm.sampling import sampling_params
from tontaube.errors import InvalidRequest
from tontaube.tokens import StageConfig, Vocabulary
from tontaube.types import StageJob, StageOutput

_MILLISECONDS = 1_000  # vLLM's priorities are whole numbers


class VllmStage:
    """A StageModule (see ``backend.base``) over a vLLM engine; not thread-safe."""

    def __init__(self, engine: Any, config: StageConfig, capacity: Capacity) -> None:
        """``engine``: an LLMEngine of ``open_engine`` with that capacity."""
        self.capacity = capacity
        self._engine = engine
        last_position = config.max_position_embeddings - 1
        self._limits = Limits(capacity.tokens, last_position, config.vocab_size)
        self._ids = EngineIds(Vocabulary(config), config.vocab_size)
        stops = len(STOPS) if config.target_codebook == 0 else 0
        self._codes = config.head_size - stops
        self._stops = tuple(range(self._codes, config.head_size))
        self._scheduler = engine.engine_core.engine_core.scheduler
        (self._positions,) = engine.apply_model(lambda model: model.positions)
        self._jobs: dict[str, tuple[int, ...]] = {}  # the engine's ids of their prompts
        self.cached_tokens = 0  # of finished jobs' prompts, found in the prefix cache

    @classmethod
    def open(
        cls,
        folder: Path,
        capacity: Capacity,
        dtype: torch.dtype = torch.float32,
        *,
        eager: bool = True,
    ) -> Self:
        """Load a stage's folder. Raises BundleError, Unavailable."""
        config = StageConfig.read(folder)
        return cls(open_engine(folder, capacity, dtype, eager=eager), config, capacity)

    @property
    def running(self) -> int:
        """Jobs added and not yet finished or aborted, as vLLM's scheduler counts them."""
        unfinished: int = self._scheduler.get_num_unfinished_requests()
        return unfinished

    def add(self, job: StageJob) -> None:
        """Admit a job; see ``StageModule.add``."""
        self._limits.check(job, self._jobs)
        ids = self._ids.translate(job.input.ids)
        self._positions.enter(ids, job.input)
        self._jobs[job.id] = ids
        try:
            prompt = tokens_input(list(ids), cache_salt=job.input.cache_salt)
            params = sampling_params(job, self._stops)
            priority = int(job.priority * _MILLISECONDS)
            self._engine.add_request(job.id, prompt, params, priority=priority)
        except VLLMClientError as error:
            self._forget(job.id)
            raise InvalidRequest(f"job {job.id}: {error}") from error

    def step(self) -> list[StageOutput]:
        """One step of the engine: a code for every job past its prompt, prefill for the rest."""
        if not self._jobs:
            return []
        return [self._give_out(output) for output in self._engine.step()]

    def abort(self, job_id: str) -> None:
        """Forget a job at once; unknown ids are ignored."""
        if job_id in self._jobs:
            self._engine.abort_request([job_id])
            self._forget(job_id)

    def counters(self) -> EngineCounters:
        """A look at vLLM's own scheduler."""
        running, waiting = self._scheduler.get_request_counts()
        return EngineCounters(running, waiting, self._scheduler.get_kv_cache_usage())

    def forget_prefixes(self) -> None:
        """Empty the prefix cache, while no job runs."""
        self._engine.reset_prefix_cache()

    def close(self) -> None:
        """Give the weights and the memory back. It ends the process-wide groups that all of
        vLLM's engines share, too: the stages of a model are closed together."""
        self._engine.engine_core.shutdown()

    def _give_out(self, output: Any) -> StageOutput:
        """``output``: vLLM's RequestOutput with the tokens of one step."""
        completion = output.outputs[0]
        drawn: list[int] = list(completion.token_ids)
        finish: str | None = None
        if output.finished:
            stop = completion.stop_reason  # the stop token, or None
            finish = "length" if stop is None else STOPS[stop - self._codes]
            self.cached_tokens += output.num_cached_tokens or 0
            self._forget(output.request_id)
        codes = tuple(code for code in drawn if code < self._codes)
        return StageOutput(output.request_id, codes, finish)

    def _forget(self, job_id: str) -> None:
        self._positions.leave(self._jobs.pop(job_id))
