"""REPS: recycled entropies against oblivious spraying and ECMP: healthy, with slow links, and when links fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.papers.flow_times import FlowTimes
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.trees import virtual
from weft.quantities.units import PS_PER_US
from weft.results.report_parts import Axis, BarFigure
from weft.trials import Procedure, Trial, TrialFailedError, TrialRun

_PATHS = {"ECMP": "flow", "oblivious spraying": "spray", "REPS": "reps"}
_FAILS_AT_US = 20.0
_NOBODY_NOTICES = "50ms"
_CONDITIONS: Mapping[str, list[dict[str, Any]]] = {
    "healthy": [],
    "a slow spine": [{"link": "p0s0<->*", "state": "slow", "rate": "100Gb/s"}],
    "a dead uplink": [{"link": "p0l0<->p0s0", "state": "down", "at": f"{_FAILS_AT_US:g}us"}],
}
_ABSTRACT = "abstract (arXiv 2407.21625v5)"


def _tree(setting: Setting, condition: str, path: str) -> dict[str, Any]:
    side, size = (16, "8MB") if setting.is_full else (8, "2MB")
    return virtual(
        "reps-2024",
        mtu=4096,
        fabric={
            "planes": 1,
            "leaves": side,
            "spines": side,
            "hosts_per_leaf": side,
            "host_rate": "400Gb/s",
            "delay": "500ns",
            "queue_capacity": "1MiB",
        },
        transport={"protocol": "uet", "path": path},
        trimming={"classes": [3]},
        control={"detection": _NOBODY_NOTICES},
        events=_CONDITIONS[condition],
        observe={"flows": True},
        traffic=[{"permutation": size, "data": "lengths"}],
    )


def _lost_for_us(run: TrialRun) -> float:
    """Return how long after the failure packets were still lost."""
    times_ps = [
        (each.last_loss_ps or each.happened_ps) - each.happened_ps
        for each in run.results.link_events
        if each.happened_ps is not None
    ]
    if not times_ps:
        raise TrialFailedError(f"{run.trial.label}: no link has failed")
    return max(times_ps) / PS_PER_US


def _procedure(setting: Setting) -> Procedure[Findings]:
    # Under ECMP the flows of a dead uplink never end.
    cases = [(c, name) for c in _CONDITIONS for name in _PATHS if (c, name) != ("a dead uplink", "ECMP")]
    runs = yield [Trial(f"{condition}, {name}", _tree(setting, condition, _PATHS[name])) for condition, name in cases]
    by_case = dict(zip(cases, runs, strict=True))
    last_us = {}
    for case, run in by_case.items():
        flows = FlowTimes.of_run(run)
        last_us[case] = float((flows.start_ps + flows.completion_ps).max()) / PS_PER_US
    measured = {f"{condition}, {name}": time for (condition, name), time in last_us.items()}
    measured["lost after a failure"] = _lost_for_us(by_case["a dead uplink", "REPS"])
    measured["lost after a failure, spraying"] = _lost_for_us(by_case["a dead uplink", "oblivious spraying"])
    figure = BarFigure(
        "Time until the last host of a permutation is done",
        Axis("µs", "µs"),
        [f"{condition}, {name}" for condition, name in last_us],
        {"time": [round(each, 1) for each in last_us.values()]},
    )
    return Findings(measured, figures=[figure])


KIND = Study(
    name="reps-2024",
    title="REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation",
    authors="Bonato et al.",
    venue="arXiv 2407.21625,",
    year=2024,
    measured=(
        "Packets that take again the paths of unmarked ones use a network better than ECMP and "
        "oblivious spraying, most of all where paths differ, and leave failed paths in less than 100 µs."
    ),
    run=(
        "A permutation of 8 MB on 256 hosts at 400 Gb/s, 16 leaves and 16 spines, over Ultra Ethernet with NSCC and "
        "trimming: healthy; with one spine at a quarter of its rate; and with an uplink that dies after 20 µs, which "
        "no switch notices."
    ),
    reduced="64 hosts, 2 MB.",
    procedure=_procedure,
    values=[
        Value(
            "lost after a failure",
            "time for which a dead path is still used",
            100.0,
            "µs",
            _ABSTRACT,
            0.0,
            bound="most",
            when=(Scale.FULL, Scale.REDUCED),
            explanation=(
                "Weft's REPS knows of a dead path by a retransmission timeout alone, and each connection for itself."
            ),
        ),
    ],
    shapes=[
        Shape(
            "healthy: REPS is faster than ECMP",
            _ABSTRACT,
            lambda measured: measured["healthy, REPS"] < measured["healthy, ECMP"],
        ),
        Shape(
            "with a slow spine REPS is faster than oblivious spraying and ECMP",
            _ABSTRACT,
            lambda measured: (
                measured["a slow spine, REPS"]
                < min(measured["a slow spine, oblivious spraying"], measured["a slow spine, ECMP"])
            ),
        ),
        Shape(
            "REPS ends sooner than oblivious spraying when an uplink dies",
            _ABSTRACT,
            lambda measured: measured["a dead uplink, REPS"] < measured["a dead uplink, oblivious spraying"],
        ),
    ],
)
