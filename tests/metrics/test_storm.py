"""Prometheus watches a lab of the real clock: the alert of a storm fires while there is one, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from metrics.prometheus import Prometheus, faster

from weft.metrics.of_lab import metrics_server
from weft.run.fabric import Fabric
from weft.topologies import leaf_spine

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


@pytest.mark.mininet
@pytest.mark.slow
def test_the_alert_of_a_pause_storm_fires_and_resolves(tmp_path: Path) -> None:
    topology = leaf_spine(planes=1, leaves=3, spines=2, hosts_per_leaf=2)
    with (
        Fabric(
            topology,
            clock="real",
            dilation=1000.0,
            buffer={"capacity": "4MiB"},
            pfc={"classes": [3], "xoff": "16KiB"},
            transport={"congestion_control": "fixed-window"},
        ) as fabric,
        metrics_server(fabric.lab, 0) as server,
        Prometheus(tmp_path, server.url) as prometheus,
    ):
        assert prometheus.firing() == set()
        storm = rounds_until(
            lambda: "WeftPauseStorm" in prometheus.firing(), lambda: fabric.incast("h0", 512 * 1024)
        )
        assert storm > 0
        # Prometheus has seen what the switches have counted.
        (paused,) = prometheus.value("sum(weft_port_pause_frames_sent_total)")
        assert paused[1] > 0
        rounds_until(
            lambda: "WeftPauseStorm" not in prometheus.firing(), lambda: fabric.permutation(256 * 1024)
        )
