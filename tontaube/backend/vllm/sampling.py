"""How a job draws its codes → vLLM's SamplingParams, equal in meaning to ``backend.sampling``.

Both keep the ``top_k`` likeliest codes, then of these the fewest that hold ``top_p``; the numbers
drawn from a seed differ.
"""

from __future__ import annotations

from vllm import SamplingParams
from vllm.sampling_params import RequestOutputKind

from tontaube.types import StageJob

_COLD = 1e-4  # temperatures below are zero


def sampling_params(job: StageJob, stops: tuple[int, ...]) -> SamplingParams:
    """``stops``: the codes that end a job."""
    sampling = job.sampling
    greedy = sampling.temperature < _COLD or sampling.top_k == 1 or sampling.top_p <= 0.0
    return SamplingParams(
        temperature=0.0 if greedy else sampling.temperature,
        top_k=0 if greedy else sampling.top_k,
        top_p=1.0 if greedy else sampling.top_p,
        seed=sampling.seed % 2**63,
        max_tokens=job.max_codes,
        min_tokens=min(job.min_codes, job.max_codes) if stops else 0,
        logit_bias=dict(job.bias) or None,
        stop_token_ids=list(stops),
        ignore_eos=True,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
    )
