"""What findings promise happens: a run with the planted settings, beside one with the values that the finding names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from weft.results.run_result import RunResult
from weft.run.lint.checked import findings_in
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.scenario.dotted import set_at

KIB = 1024
FABRIC = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "host_rate": "100Gb/s", "delay": "1us"}
PERMUTATION = [{"permutation": "256KiB", "data": "lengths"}]
INCAST = [{"incast": "h0", "bytes_per_sender": "1MiB", "data": "lengths"}]


def retransmissions(run: RunResult) -> int:
    return run.retransmissions


def lost(run: RunResult) -> int:
    return sum(run.drops.values())


def time_ps(run: RunResult) -> int:
    return run.flows[0].time_ps


@dataclass(frozen=True)
class Promise:
    """Keys of a scenario that a rule finds, and what is larger by a factor than with the values that it names."""

    wrong: dict[str, Any]
    measured: Callable[[RunResult], int]
    factor: float = 1.0
    traffic: tuple[dict[str, Any], ...] = tuple(PERMUTATION)


PROMISES = {
    "timeout-round-trip": Promise({"transport.retransmission_timeout": "7us"}, retransmissions),
    "reordering-go-back-n": Promise({"routing.load_balancing": "random"}, retransmissions),
    "reordering-window": Promise(
        {
            "transport.path": "spray",
            "transport.retransmission": "selective-repeat",
            "transport.reordering_window": "1ns",
        },
        retransmissions,
    ),
    "ecn-unreached": Promise(
        {"transport.congestion_control": "dcqcn", "fabric.queue_capacity": "128KiB"}, lost, 1.5, tuple(INCAST)
    ),
    "window-incast": Promise(
        {"transport.parameters": {"window": "1MiB"}, "fabric.queue_capacity": "512KiB"}, lost, 1.0, tuple(INCAST)
    ),
    "lossless-class": Promise(
        {"pfc.classes": [5], "buffer.capacity": "1MiB", "transport.parameters": {"window": "1MiB"}},
        lost,
        1.0,
        tuple(INCAST),
    ),
    "pfc-headroom": Promise(
        {
            "pfc.classes": [3],
            "pfc.headroom": "2KiB",
            "buffer.capacity": "512KiB",
            "transport.parameters": {"window": "1MiB"},
        },
        lost,
        1.0,
        tuple(INCAST),
    ),
    "trim-size": Promise(
        {
            "transport.protocol": "mrc",
            "int": False,
            "trimming.classes": [3],
            "trimming.size": "64B",
            "fabric.queue_capacity": "64KiB",
        },
        lost,
        1.0,
        tuple(INCAST),
    ),
    "watchdog-fast": Promise(
        {
            "pfc.classes": [3],
            "pfc.watchdog": {"detection_time": "10us", "restoration_time": "10us"},
            "buffer.capacity": "1MiB",
            "transport.parameters": {"window": "1MiB"},
        },
        lost,
        1.0,
        tuple(INCAST),
    ),
    "delay-target": Promise(
        {
            "transport.congestion_control": "swift",
            "transport.parameters": {"base_target": "1us", "flow_scaling_range": "1ns"},
        },
        time_ps,
        1.5,
    ),
    "round-trip-parameter": Promise(
        {"transport.congestion_control": "hpcc", "transport.parameters": {"round_trip": "500ns"}}, time_ps, 1.5
    ),
    "queue-frames": Promise({"fabric.queue_capacity": "2000B"}, time_ps),
}


@pytest.mark.parametrize("rule", PROMISES)
def test_what_a_finding_promises_happens(rule: str) -> None:
    promise = PROMISES[rule]
    tree: dict[str, Any] = {"clock": "virtual", "fabric": FABRIC, "traffic": list(promise.traffic)}
    tree = copy.deepcopy(tree)
    for key, value in promise.wrong.items():
        set_at(tree, key, copy.deepcopy(value))
    found = findings_in(lambda: parse_scenario(copy.deepcopy(tree), units_required=True))
    assert rule in {each.rule for each in found}
    wrong = run_scenario(parse_scenario(copy.deepcopy(tree), units_required=True))
    # Behind them, what a run has to warn of once it has run.
    assert [each.sentence for each in found] == wrong.warnings[: len(found)]
    for finding in found:
        for key, value in finding.settings.items():
            set_at(tree, key, value)
    mended = run_scenario(parse_scenario(tree, units_required=True))
    assert mended.warnings == []
    assert promise.measured(wrong) > promise.factor * promise.measured(mended)
