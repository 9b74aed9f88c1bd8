"""``python -m tontaube.bench sim``: how three policies fare at rising arrival rates.

All policies get the same requests and the same machinery; only the order of the work differs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tontaube.bench import simulated
from tontaube.bench.listening import dryness, percentiles
from tontaube.bench.simulation import Heard, Server, Simulation, Traffic
from tontaube.scheduling.urgency import ByDeadline, Policy, first_come_first_served, two_levels

OURS = "deadlines"
POLICIES: dict[str, Policy] = {
    OURS: ByDeadline(),
    "first come": first_come_first_served,
    "two levels": two_levels,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One policy at one rate. Times in seconds; TTFA counts from the request, waiting included."""

    policy: str
    rate: float
    requests: int
    ttfa: dict[str, float] | None
    underruns: int
    dry_streams: int
    dry_seconds: float
    rejected: int
    failed: int
    stream_limit: int  # at the end
    busiest: int  # streams at once
    throughput: float  # seconds of audio a second of steps

    def line(self) -> str:
        """As printed."""
        times = self.ttfa or {}
        return (
            f"{self.policy:<12}{self.rate:>6g}{self.requests:>7}"
            f"{times.get('p50', np.nan):>10.3f}{times.get('p95', np.nan):>9.3f}"
            f"{self.underruns:>11}{self.dry_seconds:>8.1f}{self.rejected:>10}{self.failed:>8}"
            f"{self.stream_limit:>7}{self.busiest:>9}{self.throughput:>8.1f}"
        )


HEADER = (
    f"{'policy':<12}{'req/s':>6}{'reqs':>7}{'TTFA p50':>10}{'p95':>9}{'underruns':>11}{'dry s':>8}"
    f"{'rejected':>10}{'failed':>8}{'limit':>7}{'busiest':>9}{'x real':>8}"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row and how the limit of streams moved: ``(moment, limit)``."""

    row: Row
    limits: tuple[tuple[float, int], ...]


def simulate(server: Server, name: str, rate: float, traffic: Traffic) -> Outcome:
    """One policy at one rate."""
    loop = simulated.VirtualLoop(simulated.Clock())

    async def run() -> Outcome:
        simulation = Simulation(server, POLICIES[name], loop)
        heard = await simulation.run(traffic.requests(rate, simulation.grammar))
        return Outcome(_row(name, rate, heard, simulation), tuple(simulation.limits))

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(run())


def _row(name: str, rate: float, heard: Sequence[Heard], simulation: Simulation) -> Row:
    scheduler = simulation.scheduler
    busy = sum(lane.busy_seconds for lane in scheduler.status())
    dry = [dryness(one.arrivals) for one in heard]
    return Row(
        policy=name,
        rate=rate,
        requests=len(heard),
        ttfa=percentiles([one.arrivals[0].at - one.asked for one in heard if one.arrivals]),
        underruns=sum(one.underruns for one in dry),
        dry_streams=sum(one.underruns > 0 for one in dry),
        dry_seconds=sum(one.seconds for one in dry),
        rejected=sum(one.outcome == "rejected" for one in heard),
        failed=sum(one.outcome == "failed" for one in heard),
        stream_limit=scheduler.admission.limit.value,
        busiest=simulation.busiest,
        throughput=scheduler.modules.emitted_seconds / busy if busy else 0.0,
    )


def verdict(rows: Sequence[Row]) -> str:
    """At the highest rate up to which ours has neither an underrun nor refuses anybody: how the
    others' p95 TTFA compares."""
    best: float | None = None
    for row in sorted((row for row in rows if row.policy == OURS), key=lambda row: row.rate):
        if row.underruns or row.rejected or row.failed:
            break
        best = row.rate
    if best is None:
        return f"{OURS}: underruns or refusals at every rate"
    times = {row.policy: row.ttfa["p95"] for row in rows if row.rate == best and row.ttfa}
    others = ", ".join(
        f"{name} {seconds:.3f} s ({seconds / times[OURS]:.1f} times)"
        for name, seconds in times.items()
        if name != OURS
    )
    return f"up to {best:g} req/s without underruns: p95 TTFA {times[OURS]:.3f} s; {others}"


def settling(limits: Sequence[tuple[float, int]]) -> str:
    """The limit of streams at about ten moments."""
    step = max(1, len(limits) // 10)
    shown = [*limits[:-1:step], limits[-1]]
    return "limit of streams: " + ", ".join(f"{at:.0f} s {value}" for at, value in shown)


def run(
    server: Server,
    traffic: Traffic,
    rates: Sequence[float],
    policies: Sequence[str] = tuple(POLICIES),
    out: Path | None = None,
) -> list[Outcome]:
    """Simulate, print a table and what follows from it, write JSON where asked to."""
    print(HEADER)
    outcomes = []
    for rate in rates:
        for name in policies:
            outcomes.append(simulate(server, name, rate, traffic))
            print(outcomes[-1].row.line(), flush=True)
    ours = [outcome for outcome in outcomes if outcome.row.policy == OURS]
    if ours:
        print(f"{ours[-1].row.rate:g} req/s, {settling(ours[-1].limits)}")
        print(verdict([outcome.row for outcome in outcomes]))
    if out is not None:
        found = {
            "server": asdict(server),
            "traffic": asdict(traffic),
            "outcomes": [asdict(outcome) for outcome in outcomes],
        }
        out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return outcomes
