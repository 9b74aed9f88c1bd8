"""Figures of the load generator and the simulator → PNG files, if matplotlib is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tontaube.errors import Unavailable

if TYPE_CHECKING:
    from tontaube.bench.load import RateFigures

_NAMES = ("p50", "p95", "p99")


def check() -> None:
    """Raises Unavailable where nothing can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise Unavailable(
            "a plot needs matplotlib: pip install -r requirements-bench.txt"
        ) from error


def load_plot(rows: Sequence[RateFigures], path: Path) -> None:
    """TTFA, window RTF and underruns by arrival rate."""
    check()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    ttfa, rtf, dry = figure.subplots(1, 3)
    rates = [row.rate for row in rows]
    for name in _NAMES:
        ttfa.plot(rates, _values([row.audible_ttfa for row in rows], name), "o-", label=name)
        rtf.plot(rates, _values([row.window_rtf for row in rows], name), "o-", label=name)
    rtf.axhline(1.0, color="grey", linewidth=0.8)
    dry.plot(rates, [row.underruns for row in rows], "o-", label="underruns")
    dry.plot(rates, [sum(row.errors.values()) for row in rows], "s--", label="errors")
    _label(ttfa, "seconds to the first audible sample")
    _label(rtf, "RTF over sliding windows")
    _label(dry, "of all requests")
    figure.savefig(path, dpi=120)


def _values(found: Sequence[dict[str, float] | None], name: str) -> list[float]:
    return [float("nan") if values is None else values[name] for values in found]


def _label(axes: Any, what: str) -> None:
    axes.set_xlabel("requests a second")
    axes.set_title(what, fontsize=10)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
