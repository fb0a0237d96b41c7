"""PowerTCP: how queue and throughput react when an incast joins a long flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.papers.flow_times import Numbers
from weft.papers.ports import Ports
from weft.papers.study import Findings, Scale, Setting, Shape, Study
from weft.papers.trees import listed_flows, virtual
from weft.results.report_parts import Axis, Curve, CurveFigure, ReportTable
from weft.trials import Procedure, Trial, TrialRun

_CONTROLS = ("powertcp", "hpcc", "timely", "dcqcn")
_LINE_GBPS = 25.0
_INCAST_US = 1_000.0
_END_US = 4_000.0
_STEP_US = 20.0
_RESPONSE_BYTES = {10: 200_000, 255: 20_000}
_NEAR_ZERO_KB = 25.0


def _tree(control: str, senders: int, hosts_per_leaf: int) -> dict[str, Any]:
    leaves = 8
    others = range(hosts_per_leaf, leaves * hosts_per_leaf)
    # The long flow comes from another leaf than the receiver's, the incast from everywhere else.
    incast = [others[1 + place % (len(others) - 1)] for place in range(senders)]
    long_bytes = round(_LINE_GBPS * 1000 / 8 * 2 * _END_US)
    flows: list[list[float]] = [
        [others[0], 0, long_bytes],
        *([host, 0, _RESPONSE_BYTES[senders], _INCAST_US] for host in incast),
    ]
    tree = virtual(
        "powertcp-2022",
        fabric={
            "planes": 1,
            "leaves": leaves,
            "spines": 2,
            "hosts_per_leaf": hosts_per_leaf,
            "host_rate": f"{_LINE_GBPS:g}Gb/s",
            "fabric_rate": "100Gb/s",
            "delay": "1us",
            "queue_capacity": "16MiB",
        },
        transport={"congestion_control": control, "ack_interval": 1},
        observe={"queues": ["p0l0:1"], "interval": f"{_STEP_US:g}us"},
        traffic=[listed_flows(flows)],
    )
    tree["int"] = control in ("powertcp", "hpcc")
    return tree


class _Reaction:
    """The receiver's link from the incast on."""

    def __init__(self, run: TrialRun) -> None:
        port = Ports(run)["p0l0:1"]
        self.times_us: Numbers = np.arange(_INCAST_US - 200.0, _END_US, _STEP_US)
        self.queue_kb = port.queue_at(self.times_us) / 1000
        self.rates_gbps = port.rates_at(np.append(self.times_us, _END_US)) / 1e9

    def drained_us(self) -> float:
        """Return how long after the incast's start the queue was short for good; the whole run if it never was."""
        long = np.flatnonzero(self.queue_kb > _NEAR_ZERO_KB)
        return float(self.times_us[min(long[-1] + 1, len(self.times_us) - 1)] - _INCAST_US) if len(long) else 0.0

    def values(self) -> Mapping[str, float]:
        """Return the longest queue, the time until it is short again, the least rate after that start, and the mean."""
        after = self.times_us >= _INCAST_US + 100.0
        smooth = np.convolve(self.rates_gbps, np.ones(5) / 5, "same")[after][:-5]
        return {
            "longest queue": float(self.queue_kb.max()),
            "drained after": self.drained_us(),
            "least rate": float(smooth.min()) / _LINE_GBPS,
            "mean rate": float(self.rates_gbps[after].mean()) / _LINE_GBPS,
            "last queue": float(np.median(self.queue_kb[-50:])),
        }


def _procedure(setting: Setting) -> Procedure[Findings]:
    senders = (10, 255) if setting.is_full else (10,)
    hosts_per_leaf = 32 if setting.is_full else 4
    cases = [(count, control) for count in senders for control in _CONTROLS]
    runs = yield [Trial(f"{count}:1, {control}", _tree(control, count, hosts_per_leaf)) for count, control in cases]
    reactions = {case: _Reaction(run) for case, run in zip(cases, runs, strict=True)}
    measured = {
        f"{count}:1, {control}, {name}": value
        for (count, control), reaction in reactions.items()
        for name, value in reaction.values().items()
    }
    figures = [
        _figure(count, what, {control: reactions[count, control] for control in _CONTROLS})
        for count in senders
        for what in ("queue", "rate")
    ]
    return Findings(measured, [_table(reactions)], figures)


def _table(reactions: Mapping[tuple[int, str], _Reaction]) -> ReportTable:
    rows: list[Sequence[str | float]] = [
        [f"{count}:1, {control}", *(round(value, 3) for value in reaction.values().values())]
        for (count, control), reaction in reactions.items()
    ]
    return ReportTable(
        "Reactions",
        [
            "incast",
            "longest queue (KB)",
            "short again after (µs)",
            "least share of the link",
            "mean share",
            "last queue (KB)",
        ],
        rows,
        note=f"Short: below {_NEAR_ZERO_KB:g} KB. Shares are means of 100 µs, from 100 µs after the incast's start.",
    )


def _figure(count: int, what: str, reactions: Mapping[str, _Reaction]) -> CurveFigure:
    of = {"queue": ("queue (KB)", "KB"), "rate": ("receiver's link (Gb/s)", "Gb/s")}[what]
    return CurveFigure(
        f"{count}:1 incast: {what}",
        Axis("time since the incast's start (µs)", "µs"),
        Axis(*of),
        [
            Curve(
                control,
                (each.times_us - _INCAST_US).tolist(),
                (each.queue_kb if what == "queue" else each.rates_gbps).round(3).tolist(),
            )
            for control, each in reactions.items()
        ],
    )


def _shapes(count: int) -> list[Shape]:
    when = (Scale.FULL, Scale.REDUCED) if count == 10 else (Scale.FULL,)
    place = f"figure 4, {count}:1"

    def of(measured: Mapping[str, float], control: str, name: str) -> float:
        return measured[f"{count}:1, {control}, {name}"]

    return [
        Shape(
            f"{count}:1: PowerTCP's queue is short again before TIMELY's and DCQCN's",
            place,
            lambda measured: (
                of(measured, "powertcp", "drained after")
                < min(of(measured, each, "drained after") for each in ("timely", "dcqcn"))
            ),
            when=when,
        ),
        Shape(
            f"{count}:1: PowerTCP loses no throughput meanwhile (above 90 % of the link)",
            place,
            lambda measured: of(measured, "powertcp", "least rate") > 0.9,
            when=when,
        ),
        Shape(
            f"{count}:1: HPCC loses throughput that PowerTCP keeps",
            place,
            lambda measured: of(measured, "hpcc", "least rate") < of(measured, "powertcp", "least rate"),
            when=when,
        ),
    ]


KIND = Study(
    name="powertcp-2022",
    title="PowerTCP: Pushing the Performance Limits of Datacenter Networks",
    authors="Addanki et al.",
    venue="NSDI",
    year=2022,
    measured=(
        "In ns-3, 256 servers at 25 Gb/s: queue and throughput of a receiver whose long flow is joined by incasts of "
        "10 and 255 servers. PowerTCP drains the queue without losing throughput; HPCC loses throughput; TIMELY does "
        "not control the queue."
    ),
    run=(
        "256 hosts at 25 Gb/s on eight leaves and two spines of 100 Gb/s; after 1 ms of a long flow, 10 hosts write "
        "200 KB each or 255 hosts 20 KB each to its receiver. Default parameters of each congestion control."
    ),
    reduced="32 hosts, the incast of 10 alone.",
    procedure=_procedure,
    shapes=[*_shapes(10), *_shapes(255)],
)
