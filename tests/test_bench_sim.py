"""The policy simulator: step times, traffic, and the real scheduler in virtual time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tontaube.bench import curves, sim, simulated
from tontaube.bench.curves import H100, Curves, StageCurve
from tontaube.bench.simulation import Server, Traffic
from tontaube.errors import InvalidRequest

# Step times --------------------------------------------------------------------------------------


@given(batch=st.integers(1, 500))
def test_larger_batches_take_longer_but_less_for_each(batch: int) -> None:
    for curve in H100.stages:
        assert curve(batch) <= curve(batch + 1)
        assert curve(batch) / batch >= curve(batch + 1) / (batch + 1)


def test_a_curve_passes_through_its_points() -> None:
    curve = StageCurve((2, 4, 8), (1.0, 2.0, 3.0))
    assert [curve(n) for n in (1, 2, 3, 4, 6, 8, 12)] == [1.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
    assert StageCurve((1,), (1.0,))(9) == 1.0


def test_curves_from_a_file(tmp_path: Path) -> None:
    stage = {"step_ms": {"16": 4.0, "1": 2.0}, "token_us": 10}
    table = dict.fromkeys(curves.STAGES, stage) | {"codec": {"call_ms": 5, "frame_ms": 0.5}}
    path = tmp_path / "steps.json"
    path.write_text(json.dumps(table))
    loaded = curves.load(path)
    assert loaded.stages[0] == StageCurve((1, 16), (0.002, 0.004), 1e-5)
    assert loaded.codec(10) == pytest.approx(0.010)
    for damaged in ("", "{}", json.dumps(table | {"cb2": {"step_ms": {}}}), "[]"):
        path.write_text(damaged)
        with pytest.raises(InvalidRequest):
            curves.load(path)


def test_curves_fitted_to_a_server() -> None:
    metrics = (
        "# HELP tontaube_step_seconds Length of a step\n"
        'tontaube_step_seconds{module="cb0",quantile="0.5"} 0.02\n'
        'tontaube_step_seconds{module="cb0",quantile="0.99"} 0.5\n'
        'tontaube_step_seconds{module="cb1",quantile="0.5"} 0.0\n'
        'tontaube_step_batch{module="cb0"} 8.0\n'
        'tontaube_step_seconds{module="codec",quantile="0.5"} 0.1\n'
    )
    found = curves.measured(metrics)
    assert found == {"cb0": (8.0, 0.02), "codec": (1.0, 0.1)}
    fitted = H100.fitted(found)
    assert fitted.stages[0](8) == pytest.approx(0.02)
    assert fitted.stages[1:] == H100.stages[1:]
    assert fitted.codec(60) == pytest.approx(0.1)


# Traffic -----------------------------------------------------------------------------------------


def test_traffic_is_repeatable_and_has_its_rate() -> None:
    grammar = simulated.grammar()
    traffic = Traffic(seconds=200.0)
    requests = traffic.requests(2.0, grammar)
    assert requests == traffic.requests(2.0, grammar)
    assert requests != replace(traffic, seed=1).requests(2.0, grammar)
    assert 320 < len(requests) < 480
    lengths = [request.segments[-1].end for request in requests]
    assert 60 < np.median(lengths) < 100 and min(lengths) >= 10
    assert all(len(r.segments) == len(r.frames) and min(r.frames) >= 13 for r in requests)


# Simulation --------------------------------------------------------------------------------------

QUICK = Traffic(seconds=3.0, seed=1)  # six requests at 2 a second, three at 1


@pytest.mark.parametrize("policy", sim.POLICIES)
def test_everybody_is_heard_to_the_end(policy: str) -> None:
    row = sim.simulate(Server(), policy, 2.0, QUICK).row
    assert row.requests > 1 and not row.rejected and not row.failed
    assert row.ttfa is not None and 0.05 < row.ttfa["p50"] < 0.5
    assert row.throughput > 5.0
    assert row == sim.simulate(Server(), policy, 2.0, QUICK).row


def test_a_slow_server_sends_away_and_lets_run_dry() -> None:
    slow = Curves(tuple(c.scaled(40.0) for c in H100.stages), H100.codec.scaled(40.0))
    server = Server(slow, max_streams=2, first_limit=2, adjust=False, room=1)
    row = sim.simulate(server, "first come", 2.0, QUICK).row
    assert row.rejected == row.requests - 3
    assert row.underruns > 0 and row.dry_seconds > 1.0
    assert row.busiest == 2


def test_what_is_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sim.json"
    sim.run(Server(), QUICK, [1.0], out=out)
    printed = capsys.readouterr().out
    assert "up to 1 req/s without underruns" in printed and "limit of streams: 0 s 64" in printed
    found = json.loads(out.read_text())
    assert [outcome["row"]["policy"] for outcome in found["outcomes"]] == list(sim.POLICIES)
