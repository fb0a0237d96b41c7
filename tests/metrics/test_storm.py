"""Prometheus watches a lab of the real clock: the alert of a storm fires while there is one, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from metrics.prometheus import Prometheus, faster

from weft.clocks.lab import Lab
from weft.metrics import MetricsServer, rendered
from weft.metrics.of_lab import LabMetrics
from weft.metrics.recent import Recent
from weft.paths import ROOT
from weft.run.fabric import Fabric
from weft.run.spec import run_spec
from weft.scenario import load_scenario

LAB = ROOT / "labs/24-telemetry"
MOST_ROUNDS = 60


def test_durations_are_scaled_and_nothing_else() -> None:
    assert faster("rate(x[30s]) > 3 for: 10s, p1s5: 5s", 5) == "rate(x[6000ms]) > 3 for: 2000ms, p1s5: 1000ms"


def rounds_until(condition: Callable[[], bool], traffic: Callable[[], object]) -> int:
    """Run traffic again and again until something is the case; return how often."""
    for number in range(MOST_ROUNDS):
        if condition():
            return number
        traffic()
    raise AssertionError(f"not the case after {MOST_ROUNDS} rounds")


def served(lab: Lab) -> MetricsServer:
    """Return a server of a lab's metrics, which it reads once a second at most."""
    families = Recent(LabMetrics(lab).families)
    return MetricsServer(0, lambda: rendered(families.value()))


@pytest.mark.mininet
@pytest.mark.slow
def test_the_alerts_of_a_storm_fire_and_resolve(tmp_path: Path) -> None:
    spec = run_spec(load_scenario(LAB / "scenario.yaml"))
    with (
        Fabric(spec) as fabric,
        served(fabric.lab) as server,
        Prometheus(tmp_path, server.url, [LAB / "solution/alerts.yaml"]) as prometheus,
    ):
        assert prometheus.firing() == []
        rounds_until(
            lambda: {"WeftPauseStorm", "StormRoot"} <= named(prometheus.firing()),
            lambda: fabric.incast("h0", 512 * 1024),
        )
        # Where the storm comes from, and nowhere else.
        roots = [each for each in prometheus.firing() if each["alertname"] == "StormRoot"]
        assert [(each["switch"], each["port"], each["peer"]) for each in roots] == [("p0l0", "1", "h0")]
        (paused,) = prometheus.value("sum(weft_port_pause_frames_sent_total)")
        assert paused[1] > 0
        # What packets met at the hop towards the receiver, and what they met in spines that it held up.
        latencies_s = {
            labels["switch"]: value
            for labels, value in prometheus.value("weft:hop_latency:seconds_p99")
            if labels["peer"] in ("h0", "p0l0")
        }
        assert latencies_s["p0l0"] > 20e-6
        assert max(latencies_s["p0s0"], latencies_s["p0s1"]) > 20e-6
        rounds_until(
            lambda: "WeftPauseStorm" not in named(prometheus.firing()),
            lambda: fabric.permutation(256 * 1024),
        )


def named(alerts: list[dict[str, str]]) -> set[str]:
    return {each["alertname"] for each in alerts}
