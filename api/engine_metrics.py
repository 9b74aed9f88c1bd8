"""An engine's status, read when Prometheus asks → its metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api.ports import SpeechEngine


class EngineCollector(Collector):
    """Registered once in an app's registry."""

    def __init__(self, engine: SpeechEngine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        status = self._engine.status()
        gauges = {
            "ready": ("A warm-up synthesis has succeeded and steps can be made", status.ready),
            "queue_depth": ("Requests waiting for their turn", status.queue_length),
            "active_streams": ("Streams being spoken", status.active_streams),
            "stream_limit": ("Streams that may be spoken at once", status.stream_limit),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"tontaube_{name}", text, value=float(value))
        counters = {
            "engine_cancellations": ("Streams freed before their end", status.cancellations),
            "engine_underruns": ("Pieces later than their listener needed", status.underruns),
            "engine_audio_seconds": ("Audio made", status.emitted_seconds),
        }
        for name, (text, total) in counters.items():
            yield CounterMetricFamily(f"tontaube_{name}", text, value=float(total))
        yield from self._caches()
        yield from self._modules()

    def _caches(self) -> Iterator[Metric]:
        status = self._engine.status()
        looks = CounterMetricFamily(
            "tontaube_cache_lookups", "Looks into a cache", labels=["cache", "result"]
        )
        looks.add_metric(["phrase", "hit"], status.phrase_hits)
        looks.add_metric(["phrase", "miss"], status.phrase_misses)
        looks.add_metric(["voice", "hit"], status.voice_hits)
        looks.add_metric(["voice", "miss"], status.voice_misses)
        yield looks

    def _modules(self) -> Iterator[Metric]:
        """Of CB0..CB3 and the codec; times and batches are of the last few hundred steps."""
        steps = CounterMetricFamily("tontaube_steps", "Steps made", labels=["module"])
        busy = CounterMetricFamily(
            "tontaube_step_busy_seconds", "Time spent in steps", labels=["module"]
        )
        times = GaugeMetricFamily(
            "tontaube_step_seconds", "Length of a step", labels=["module", "quantile"]
        )
        batch = GaugeMetricFamily(
            "tontaube_step_batch", "Sequences in a step, on average", labels=["module"]
        )
        waiting = GaugeMetricFamily(
            "tontaube_module_waiting", "Work not admitted yet", labels=["module"]
        )
        running = GaugeMetricFamily(
            "tontaube_module_running", "Work being stepped", labels=["module"]
        )
        for module in self._engine.status().modules:
            steps.add_metric([module.name], module.steps)
            busy.add_metric([module.name], module.busy_seconds)
            times.add_metric([module.name, "0.5"], module.step_seconds)
            times.add_metric([module.name, "0.99"], module.step_seconds_p99)
            batch.add_metric([module.name], module.batch)
            waiting.add_metric([module.name], module.waiting)
            running.add_metric([module.name], module.running)
        yield from (steps, busy, times, batch, waiting, running)
