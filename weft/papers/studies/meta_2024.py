"""Meta's RoCE network: ECMP, and E-ECMP, which hashes the queue pair, too, by number of queue pairs."""

from __future__ import annotations

from typing import Any

from weft.papers.flow_times import FlowTimes
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.trees import virtual
from weft.quantities.units import PS_PER_US
from weft.results.report_parts import Axis, BarFigure
from weft.trials import Procedure, Trial

_QUEUE_PAIRS = (1, 4, 16)
_ECMP, _E_ECMP = "flow", "flow_and_queue_pair"
_BYTES = {Scale.FULL: 16_000_000, Scale.REDUCED: 2_000_000}
_SEEDS = (1, 2, 3)
_PLACE = "section on routing; engineering.fb.com, 5 August 2024"


def _tree(setting: Setting, balancing: str, queue_pairs: int, seed: int) -> dict[str, Any]:
    side = 16 if setting.is_full else 8
    tree = virtual(
        "meta-2024",
        mtu=4096,
        fabric={
            "planes": 1,
            "leaves": side,
            "spines": side,
            "hosts_per_leaf": side,
            "host_rate": "400Gb/s",
            "queue_capacity": "32MiB",
        },
        routing={"load_balancing": balancing},
        transport={"congestion_control": "fixed-window"},
        observe={"flows": True},
        traffic=[{"permutation": _BYTES[setting.scale], "queue_pairs": queue_pairs, "data": "lengths"}],
    )
    return tree | {"seed": seed}


def _procedure(setting: Setting) -> Procedure[Findings]:
    cases = [(_ECMP, 1), *((_E_ECMP, count) for count in _QUEUE_PAIRS)]
    keyed = [(case, seed) for case in cases for seed in _SEEDS]
    runs = yield [
        Trial(f"{balancing}, {count} queue pairs, seed {seed}", _tree(setting, balancing, count, seed))
        for (balancing, count), seed in keyed
    ]
    # Flows of a permutation are divided among their queue pairs: a host is done when its last part is.
    last_us: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    for (case, _), run in zip(keyed, runs, strict=True):
        flows = FlowTimes.of_run(run)
        last_us[case].append(float((flows.start_ps + flows.completion_ps).max()) / PS_PER_US)
    mean_us = {case: sum(times) / len(times) for case, times in last_us.items()}
    measured = {f"{balancing}, {count}": mean_us[balancing, count] for balancing, count in cases}
    measured["speed-up"] = mean_us[_ECMP, 1] / min(mean_us[_E_ECMP, count] for count in _QUEUE_PAIRS)
    figure = BarFigure(
        "Time until the last host of a permutation is done (mean of three seeds)",
        Axis("µs", "µs"),
        [f"{'ECMP' if balancing == _ECMP else 'E-ECMP'}, {count} queue pairs" for balancing, count in cases],
        {"time": [round(mean_us[case], 1) for case in cases]},
    )
    return Findings(measured, figures=[figure])


KIND = Study(
    name="meta-2024",
    title="RDMA over Ethernet for Distributed AI Training at Meta Scale",
    authors="Gangidi et al.",
    venue="SIGCOMM",
    year=2024,
    measured=(
        "In production clusters: E-ECMP, which hashes the destination queue pair, too, together with more queue pairs "
        "a connection, improves all-reduces by up to 40 % over ECMP."
    ),
    run=(
        "A permutation of 256 hosts at 400 Gb/s on 16 leaves and 16 spines without oversubscription, 16 MB a host, "
        "each flow on one queue pair or divided among several; the time of the slowest host, the mean of three seeds."
    ),
    reduced="64 hosts, 2 MB a host.",
    procedure=_procedure,
    values=[
        Value(
            "speed-up",
            "speed-up by E-ECMP with queue-pair scaling (published: of all-reduces)",
            1.4,
            "",
            "up to 40 %, " + _PLACE,
            explanation=(
                "a permutation is communication alone, in which every host waits for the most crowded uplink. "
                "Published all-reduces use the network part of their time, over links of which Meta's fabric has "
                "more upwards than downwards."
            ),
        ),
    ],
    shapes=[
        Shape(
            "under E-ECMP, more queue pairs are faster: 16 than 4, 4 than 1",
            _PLACE,
            lambda measured: (
                measured["flow_and_queue_pair, 1"]
                > measured["flow_and_queue_pair, 4"]
                > measured["flow_and_queue_pair, 16"]
            ),
        ),
        Shape(
            "E-ECMP with queue-pair scaling is faster than ECMP",
            _PLACE,
            lambda measured: measured["speed-up"] > 1.1,
        ),
    ],
)
