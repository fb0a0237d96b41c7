"""STrack: a multipath transport with ECN for its paths and round trips for its window, against RoCEv2 on one path."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from weft.papers.collectives import times_us
from weft.papers.flow_times import FlowTimes
from weft.papers.study import Findings, Setting, Shape, Study, Value
from weft.papers.trees import listed_flows, virtual
from weft.quantities.units import PS_PER_US
from weft.results.report_parts import Axis, BarFigure
from weft.trials import Procedure, Trial, TrialRun

_ROCE, _MULTIPATH = "RoCEv2", "multipath"
_HOSTS: Mapping[str, Mapping[str, Any]] = {
    _ROCE: {"transport": {"congestion_control": "dcqcn"}, "pfc": {"classes": [3]}},
    _MULTIPATH: {"transport": {"protocol": "uet"}, "trimming": {"classes": [3]}},
}
_SYNTHETIC = ("permutation", "oversubscribed permutation", "incast")
_COLLECTIVE = ("all-reduce", "all-to-all")
_ABSTRACT = "abstract (arXiv 2407.15266)"


def _traffic(setting: Setting, work: str, hosts: int) -> dict[str, Any]:
    flow, reduced, exchanged = (8_000_000, "64MB", "64MB") if setting.is_full else (2_000_000, "16MB", "4MB")
    # A scheduler that knows nothing of switches: neighbours of a ring are anywhere.
    ranks = random.Random(1).sample(range(hosts), hosts)
    return {
        "permutation": {"permutation": flow, "data": "lengths"},
        "oversubscribed permutation": {"permutation": flow, "data": "lengths"},
        "incast": listed_flows((sender, 0, flow) for sender in ranks[: hosts // 8] if sender),
        "all-reduce": {
            "collective": "allreduce",
            "algorithms": ["ring"],
            "sizes": [reduced],
            "ranks": ranks,
            "data": "lengths",
        },
        "all-to-all": {
            "collective": "alltoall",
            "algorithms": ["direct"],
            "sizes": [exchanged],
            "ranks": ranks,
            "data": "lengths",
        },
    }[work]


def _tree(setting: Setting, work: str, hosts: str) -> dict[str, Any]:
    side = 16 if setting.is_full else 8
    return virtual(
        "strack-2024",
        mtu=4096,
        fabric={
            "planes": 1,
            "leaves": side,
            "spines": side // 2 if work == "oversubscribed permutation" else side,
            "hosts_per_leaf": side,
            "host_rate": "400Gb/s",
            "fabric_rate": "400Gb/s",
            "delay": "500ns",
        },
        observe={"flows": True},
        traffic=[_traffic(setting, work, side * side)],
        **_HOSTS[hosts],
    )


def _time_us(work: str, run: TrialRun) -> float:
    if work in _COLLECTIVE:
        return max(times_us(run).values())
    flows = FlowTimes.of_run(run)
    return float((flows.start_ps + flows.completion_ps).max()) / PS_PER_US


def _procedure(setting: Setting) -> Procedure[Findings]:
    cases = [(work, hosts) for work in (*_SYNTHETIC, *_COLLECTIVE) for hosts in _HOSTS]
    runs = yield [Trial(f"{work}, {hosts}", _tree(setting, work, hosts)) for work, hosts in cases]
    time_us = {case: _time_us(case[0], run) for case, run in zip(cases, runs, strict=True)}
    measured = {f"{work}, {hosts}": time for (work, hosts), time in time_us.items()}
    speed_ups = {work: time_us[work, _ROCE] / time_us[work, _MULTIPATH] for work in (*_SYNTHETIC, *_COLLECTIVE)}
    measured |= {f"speed-up, {work}": speed_up for work, speed_up in speed_ups.items()}
    measured["speed-up of synthetic loads"] = max(speed_ups[work] for work in _SYNTHETIC)
    measured["speed-up of collectives"] = max(speed_ups[work] for work in _COLLECTIVE)
    figure = BarFigure(
        "Time until all hosts are done",
        Axis("µs", "µs"),
        list(speed_ups),
        {hosts: [round(time_us[work, hosts], 1) for work in speed_ups] for hosts in _HOSTS},
    )
    return Findings(measured, figures=[figure])


KIND = Study(
    name="strack-2024",
    title="STrack: A Reliable Multipath Transport for AI/ML Clusters",
    authors="Le et al.",
    venue="arXiv 2407.15266,",
    year=2024,
    measured=(
        "In simulation, a transport that spreads each connection's packets by ECN and sets windows by round trips: "
        "up to 6 times as fast as RoCEv2 with synthetic loads, and 27.4 % faster with collectives."
    ),
    run=(
        "A transport of that kind, Ultra Ethernet with NSCC and REPS over switches that trim, in STrack's place; "
        "RoCEv2 is DCQCN over PFC, a path for each flow. 256 hosts at 400 Gb/s on 16 leaves and 16 spines: "
        "permutations of 8 MB, also with half of the spines, an incast of 32, a ring all-reduce and an all-to-all of "
        "64 MB over ranks in random order."
    ),
    reduced="64 hosts, flows of 2 MB, collectives of 16 and 4 MB.",
    procedure=_procedure,
    values=[
        Value(
            "speed-up of synthetic loads",
            "largest speed-up with synthetic loads (published: of STrack)",
            6.0,
            "",
            _ABSTRACT,
            when=(),
            explanation="it is another transport, and the authors' loads and buffers are not those here",
        ),
        Value(
            "speed-up of collectives",
            "largest speed-up with collectives (published: of STrack)",
            1.274,
            "",
            _ABSTRACT,
            when=(),
            explanation=(
                "it is another transport, and here ranks are placed at random, where one path for each flow does worst"
            ),
        ),
    ],
    shapes=[
        Shape(
            "many paths are faster than one in permutations, with and without oversubscription",
            _ABSTRACT,
            lambda measured: (
                min(measured["speed-up, permutation"], measured["speed-up, oversubscribed permutation"]) > 1.1
            ),
        ),
        Shape(
            "and in collectives",
            _ABSTRACT,
            lambda measured: min(measured["speed-up, all-reduce"], measured["speed-up, all-to-all"]) > 1.0,
        ),
    ],
)
