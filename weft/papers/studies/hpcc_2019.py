"""HPCC: slowdown by size of flow under WebSearch and FB_Hadoop, on the authors' 320 hosts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.papers.flow_times import FlowTimes, Numbers
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.results.report_parts import Axis, Curve, CurveFigure
from weft.trials import Procedure, Trial, TrialRun

_RESULTS = "authors' results, hpcc-group.github.io, 99th percentile"
_SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "HPCC": {"congestion_control": "hpcc", "parameters": {"target_utilisation": 0.99, "additive_increase": 80}},
    "DCQCN+w": {
        "congestion_control": "dcqcn",
        "preset": "hpcc-comparison",
        "parameters": {"window_follows_rate": 1},
        "cnp_interval": 0,
    },
    "TIMELY+w": {
        "congestion_control": "timely",
        "parameters": {
            "low_threshold": "50us",
            "high_threshold": "500us",
            "additive_increase": "100Mb/s",
            "min_rate": "1Gb/s",
            "window_follows_rate": 1,
        },
    },
    "DCTCP": {
        "congestion_control": "dctcp",
        "parameters": {"gain": 0.0625, "initial_window": 147, "max_window": 147},
    },
}
"""As run.py of the authors' simulator sets them for hosts of 100 Gb/s; eta as on the page of their results."""
_DCTCP_ECN = {"kmin": 300_000, "kmax": 300_001, "pmax": 1.0}
_FABRICS: Mapping[Scale, Mapping[str, Any]] = {
    Scale.FULL: {"pods": 5, "leaves": 4, "spines": 4, "cores_per_spine": 4, "hosts_per_leaf": 16},
    Scale.REDUCED: {"pods": 2, "leaves": 2, "spines": 2, "cores_per_spine": 2, "hosts_per_leaf": 8},
}
_REDUCED_DURATION = "1ms"


@dataclass(frozen=True)
class _Workload:
    """A distribution of sizes at a load, and the ranges of size (bytes) in which slowdowns are compared.

    `duration`: for which flows start in a full run; the authors' do for 100 ms.
    """

    flow_sizes: str
    load: float
    ranges: Mapping[str, tuple[int, int]]
    duration: str = "100ms"

    @property
    def name(self) -> str:
        return f"{self.flow_sizes} {self.load:.0%}"


_SIZES = {"≤ 6.7 KB": (0, 6_700), "50 KB": (40_000, 61_000), "30 MB": (20_000_000, 30_000_000)}
_WORKLOADS = (
    _Workload("websearch", 0.3, _SIZES),
    _Workload("websearch", 0.5, {"≤ 6.7 KB": (0, 6_700)}),
    # 100 ms have a million flows.
    _Workload("fb_hadoop", 0.3, {"≤ 7 KB": (0, 7_000)}, "20ms"),
)
_PUBLISHED = {
    ("websearch 30%", "≤ 6.7 KB"): (1.7, 4.3, 4.4),
    ("websearch 30%", "50 KB"): (2.45, 3.8, 3.9),
    ("websearch 30%", "30 MB"): (5.1, 4.1, 4.5),
    ("websearch 50%", "≤ 6.7 KB"): (2.0, 7.0, 6.4),
    ("fb_hadoop 30%", "≤ 7 KB"): (2.1, 4.15, 4.3),
}
"""By workload and size: HPCC, DCQCN+w and TIMELY+w."""


_DIFFERENT_RUN = (
    "Weft draws other flows than the authors' lists hold, and acknowledgements of DCQCN wait in the data's queues in "
    "ns-3, where here they have a class of their own."
)


def _key(workload: str, sizes: str, scheme: str) -> str:
    return f"{workload}, {sizes}, {scheme}"


def _trial(setting: Setting, workload: _Workload, scheme: str) -> Trial:
    tree = {
        "name": "hpcc-2019",
        "clock": "virtual",
        "seed": 1,
        "mtu": 1024,
        "int": scheme == "HPCC",
        "fabric": {
            "kind": "fat_tree",
            "planes": 1,
            "host_rate": "100Gb/s",
            "fabric_rate": "400Gb/s",
            "delay": "1us",
            "queue_capacity": "32MiB",
            **_FABRICS[setting.scale],
        },
        "transport": {"ack_interval": 1, **_SCHEMES[scheme]},
        "observe": {"flows": True},
        "traffic": [_traffic(setting, workload)],
    }
    if scheme == "DCTCP":
        tree["ecn"] = _DCTCP_ECN
    return Trial(f"{workload.name}, {scheme}", tree)


def _traffic(setting: Setting, workload: _Workload) -> dict[str, Any]:
    if setting.flows is not None and workload is _WORKLOADS[0]:
        return {"flow_list": str(setting.flows), "data": "lengths"}
    return {
        "workload": {
            "flow_sizes": workload.flow_sizes,
            "load": workload.load,
            "duration": workload.duration if setting.is_full else _REDUCED_DURATION,
        }
    }


def _procedure(setting: Setting) -> Procedure[Findings]:
    cases = list(itertools.product(_WORKLOADS, _SCHEMES))
    runs = yield [_trial(setting, workload, scheme) for workload, scheme in cases]
    by_case: dict[tuple[str, str], TrialRun] = {
        (workload.name, scheme): run for (workload, scheme), run in zip(cases, runs, strict=True)
    }
    measured: dict[str, float] = {}
    figures = []
    for workload in _WORKLOADS:
        flows = {scheme: FlowTimes.of_run(by_case[workload.name, scheme]) for scheme in _SCHEMES}
        # The authors normalise by packets without INT, which the other schemes' are.
        slowdowns = {scheme: each.slowdowns(flows["DCQCN+w"]) for scheme, each in flows.items()}
        for scheme, each in flows.items():
            for sizes, (least, most) in workload.ranges.items():
                chosen = (each.size_bytes > least) & (each.size_bytes <= most)
                if chosen.any():
                    measured[_key(workload.name, sizes, scheme)] = _percentile(slowdowns[scheme][chosen])
        figures.append(_figure(workload, flows, slowdowns))
    return Findings(measured, figures=figures, notes=[_flows_note(setting)])


def _percentile(slowdowns: Numbers) -> float:
    return float(np.percentile(slowdowns, 99))


def _flows_note(setting: Setting) -> str:
    if setting.flows is not None:
        return f"The flows of websearch 30% are those of {setting.flows.name}."
    return (
        "Weft draws the flows (Poisson arrivals at each host, destinations at random) from the distributions in the "
        "authors' repository, which has the generator of their lists but not the lists; --flows takes such a list."
    )


def _figure(workload: _Workload, flows: Mapping[str, FlowTimes], slowdowns: Mapping[str, Numbers]) -> CurveFigure:
    def points(scheme: str) -> Iterator[tuple[float, float]]:
        sizes = flows[scheme].size_bytes
        edges = np.unique(np.percentile(sizes, np.linspace(0, 100, 21)))
        for low, high in itertools.pairwise(edges):
            chosen = (sizes > low) & (sizes <= high)
            if chosen.any():
                yield float(high) / 1000, round(_percentile(slowdowns[scheme][chosen]), 3)

    curves = []
    for scheme in flows:
        found = list(points(scheme))
        curves.append(Curve(scheme, [x for x, _ in found], [y for _, y in found]))
    return CurveFigure(
        f"{workload.name}: slowdown by size",
        Axis("size of the flow (kB)", "kB", "log"),
        Axis("slowdown, 99th percentile", "", "log"),
        curves,
        text="Flows in twenty groups of equal number by size.",
    )


def _values() -> Iterator[Value]:
    for (workload, sizes), published in _PUBLISHED.items():
        for scheme, value in zip(_SCHEMES, published, strict=False):
            yield Value(
                _key(workload, sizes, scheme),
                _key(workload, sizes, scheme),
                value,
                "",
                _RESULTS,
                explanation=_DIFFERENT_RUN,
            )


def _short_flows_gain(workload: str, sizes: str) -> Shape:
    def holds(measured: Mapping[str, float]) -> bool:
        others = [measured[_key(workload, sizes, scheme)] for scheme in _SCHEMES if scheme != "HPCC"]
        return measured[_key(workload, sizes, "HPCC")] < min(others)

    # A reduced run has too few flows of one middling size.
    when = (Scale.FULL,) if sizes == "50 KB" else (Scale.FULL, Scale.REDUCED)
    return Shape(f"{workload}, {sizes}: HPCC has the least slowdown of the four", _RESULTS, holds, when=when)


KIND = Study(
    name="hpcc-2019",
    title="HPCC: High Precision Congestion Control",
    authors="Li et al.",
    venue="SIGCOMM",
    year=2019,
    measured=(
        "Slowdown of flows by size in ns-3: 320 hosts at 100 Gb/s on three tiers of 400 Gb/s, WebSearch and FB_Hadoop "
        "at 30 % and 50 % load (figures 10 and 11; the values are from the authors' page of complete results, with "
        "eta = 99 %)."
    ),
    run=(
        "The same fabric with fabric.p4 in all 56 switches, 100 ms of flows (of FB_Hadoop 20 ms), HPCC with eta = 99 % "
        "and W_AI = 80 B, DCQCN and TIMELY with a window that follows the rate, as in the authors' simulator, and "
        "DCTCP from a full window."
    ),
    reduced="32 hosts on two pods, 1 ms of flows.",
    procedure=_procedure,
    values=list(_values()),
    shapes=[_short_flows_gain(workload, sizes) for workload, sizes in _PUBLISHED if sizes != "30 MB"],
    takes_flows="a list of flows of the authors' traffic_gen.py for WebSearch at 30 %",
)
