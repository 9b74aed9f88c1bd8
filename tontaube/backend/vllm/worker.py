"""vLLM's worker for CPUs, with seeds for prompts that are read in several pieces."""

from __future__ import annotations

from typing import Any

from vllm.v1.worker.cpu_worker import CPUWorker


class StageWorker(CPUWorker):  # type: ignore[misc]  # it has no types
    """vLLM draws a code after every piece of a prompt and throws away all but the last. It winds
    the generator of a seed back after that, which torch's generators for CPUs refuse, so that a
    step with such a piece failed. Here those codes are drawn without the request's generator.
    """

    def sample_tokens(self, grammar_output: Any) -> Any:
        """A step's second half, by vLLM's name: logits → what was drawn."""
        runner = self.model_runner
        generators = runner.input_batch.generators  # by row of the batch
        unread = runner.discard_request_mask.np  # [rows]: more of the prompt is to come
        kept = {row: generators.pop(row) for row in list(generators) if unread[row]}
        try:
            return super().sample_tokens(grammar_output)
        finally:
            generators.update(kept)
