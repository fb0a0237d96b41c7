"""Swift: incasts of up to 1,000 senders with windows below a packet, and shares of near and far senders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.papers.ports import Ports
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.trees import listed_flows, virtual
from weft.quantities.fairness import jain_index
from weft.results.report_parts import Axis, Curve, CurveFigure, ReportTable
from weft.trials import Procedure, Trial, TrialRun

_MEASURED_US = 2_000.0
_SETTLED_US = 24_000.0
"""With windows below a packet a flow sends a packet in many round trips, and shares take as much longer to settle."""
_LINE_GBPS = 100.0
_QUEUE = "p0l0:1"


@dataclass(frozen=True)
class _Incast:
    """Half of the senders are below the receiver's leaf, half in the other pod; measured for as long as they settle."""

    senders: int
    parameters: Mapping[str, Any]
    mtu: int = 1024
    settle_us: float = _MEASURED_US

    @property
    def hosts_per_leaf(self) -> int:
        return self.senders // 2 + 1

    @property
    def near(self) -> range:
        return range(1, self.hosts_per_leaf)

    @property
    def far(self) -> range:
        return range(self.hosts_per_leaf, self.hosts_per_leaf + self.senders // 2)

    def tree(self) -> dict[str, Any]:
        # Enough for twice the measured time, so that nobody ends within it.
        size_bytes = round(_LINE_GBPS / 8 * 1000 * 2 * self.settle_us * 1.6 / self.senders)
        everyone = [*self.near, *self.far]
        return virtual(
            "swift-2020",
            mtu=self.mtu,
            fabric={
                "kind": "fat_tree",
                "planes": 1,
                "pods": 2,
                "leaves": 1,
                "spines": 1,
                "cores_per_spine": 1,
                "hosts_per_leaf": self.hosts_per_leaf,
                "host_rate": f"{_LINE_GBPS:g}Gb/s",
                "fabric_rate": "400Gb/s",
                "queue_capacity": "16MiB",
            },
            transport={"congestion_control": "swift", "parameters": self.parameters},
            observe={"queues": [*(f"h{host}:0" for host in everyone), _QUEUE], "interval": "100us"},
            traffic=[listed_flows([host, 0, size_bytes] for host in everyone)],
        )


@dataclass(frozen=True)
class _Outcome:
    far_over_near: float
    jain: float
    link_share: float
    queue_kb: float
    sent_again: int

    @classmethod
    def of(cls, incast: _Incast, run: TrialRun) -> _Outcome:
        ports = Ports(run)
        span = (incast.settle_us, 2 * incast.settle_us)
        near, far = ([ports[f"h{host}:0"].rate_bps(*span) for host in hosts] for hosts in (incast.near, incast.far))
        queue = ports[_QUEUE]
        depths = queue.queue_at(np.arange(*span, 100.0))
        return cls(
            float(np.mean(far) / np.mean(near)),
            jain_index([*near, *far]),
            queue.rate_bps(*span) / (_LINE_GBPS * 1e9),
            float(np.mean(depths)) / 1000,
            run.results_of("flows")[0].retransmissions,
        )


_BY_RATE: Mapping[str, Any] = {}
_BY_WINDOW: Mapping[str, Any] = {"flow_scaling_round_trip": "0us"}
# With ten packets at first, as by default, the largest incast fills its queue for longer than is measured here.
_BELOW_A_PACKET: Mapping[str, Any] = {"initial_window": 1}
_WHOLE_PACKETS: Mapping[str, Any] = {"initial_window": 1, "min_window": 1}


def _procedure(setting: Setting) -> Procedure[Findings]:
    counts = (2, 10, 100, 400, 1000) if setting.is_full else (2, 10, 100)
    large, settled_us = max(400, counts[-1]), _SETTLED_US if setting.is_full else _SETTLED_US / 2
    cases = {
        "by rate": [_Incast(count, _BY_RATE) for count in counts],
        "by window": [_Incast(count, _BY_WINDOW) for count in counts],
        "below a packet": [_Incast(large, _BELOW_A_PACKET, 4096, settled_us)],
        "whole packets": [_Incast(large, _WHOLE_PACKETS, 4096, settled_us)],
    }
    incasts = [(name, incast) for name, each in cases.items() for incast in each]
    runs = yield [Trial(f"{incast.senders} senders, {name}", incast.tree()) for name, incast in incasts]
    outcomes: dict[str, list[_Outcome]] = {name: [] for name in cases}
    for (name, incast), run in zip(incasts, runs, strict=True):
        outcomes[name].append(_Outcome.of(incast, run))
    by_rate = outcomes["by rate"]
    measured = {
        "least far over near": min(min(each.far_over_near, 1 / each.far_over_near) for each in by_rate),
        "least far over near, by window": min(each.far_over_near for each in outcomes["by window"]),
        "least share of the link": min(each.link_share for each in by_rate),
        "most packets sent again": float(max(each.sent_again for each in by_rate)),
        "far over near, below a packet": outcomes["below a packet"][0].far_over_near,
        "queue, below a packet": outcomes["below a packet"][0].queue_kb,
        "queue, whole packets": outcomes["whole packets"][0].queue_kb,
    }
    return Findings(measured, [_table(counts, outcomes)], [_figure(counts, outcomes)], [_NOTE])


def _table(counts: Sequence[int], outcomes: Mapping[str, Sequence[_Outcome]]) -> ReportTable:
    names = {"by rate": "flows compared by rate", "by window": "by window, as printed"}
    return ReportTable(
        "Incasts of near and far senders",
        ["senders", "flow scaling", "far over near", "Jain's index", "share of the link", "queue (KB)", "sent again"],
        [
            [
                count,
                title,
                round(each.far_over_near, 3),
                round(each.jain, 3),
                round(each.link_share, 3),
                round(each.queue_kb, 1),
                each.sent_again,
            ]
            for name, title in names.items()
            for count, each in zip(counts, outcomes[name], strict=True)
        ],
    )


def _figure(counts: Sequence[int], outcomes: Mapping[str, Sequence[_Outcome]]) -> CurveFigure:
    return CurveFigure(
        "Shares of far senders",
        Axis("senders", "", "log"),
        Axis("mean rate of far senders over near ones"),
        [
            Curve(title, counts, [round(each.far_over_near, 4) for each in outcomes[name]])
            for name, title in (("by rate", "flow scaling by rate"), ("by window", "by window, as printed"))
        ],
    )


_NOTE = (
    "Windows below a packet: packets of 4,096 bytes, one packet at first, and measured after 24 ms (12 in a reduced "
    "run). A flow of 400 sends a packet every 140 µs, so shares settle slowly: 2 to 4 ms after the start far senders "
    "still have 0.47 of the rate of near ones, which were the first to see an acknowledgement."
)

KIND = Study(
    name="swift-2020",
    title="Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
    authors="Kumar et al.",
    venue="SIGCOMM",
    year=2020,
    measured=(
        "In Google's clusters at 100 Gb/s: large incasts without losses thanks to windows below a packet, and fair "
        "shares of near and far flows by scaling targets with hops (section 3.5)."
    ),
    run=(
        "Incasts of 2 to 1,000 senders at 100 Gb/s, half of them below the receiver's leaf, half in another pod (one "
        "and five switches away), with Weft's default parameters; 2 to 4 ms after the start. By default flow scaling "
        "compares windows at one round trip (flow_scaling_round_trip), that is, rates; the printed formula compares "
        "windows, so at one rate the far flow, with its larger window, has the lower target. Both are run."
    ),
    reduced="up to 100 senders, 400 where windows below a packet and whole ones are compared.",
    procedure=_procedure,
    values=[
        Value(
            "least share of the link",
            "share of the link's rate, any number of senders",
            1.0,
            "",
            "abstract: 100 Gb/s a server, a load close to 100 %",
            0.05,
            when=(Scale.FULL, Scale.REDUCED),
        ),
    ],
    shapes=[
        Shape(
            "near and far senders have at least 0.6 of each other's rate, at any number of senders",
            "section 3.5 (topology); the bound is Weft's",
            lambda measured: measured["least far over near"] >= 0.6,
        ),
        Shape(
            "they do with windows below a packet, too, once shares have settled",
            "sections 3.4 and 3.5; the bound is Weft's",
            lambda measured: 0.6 <= measured["far over near, below a packet"] <= 1 / 0.6,
        ),
        Shape(
            "no packet of these incasts is lost",
            "section 3.4",
            lambda measured: measured["most packets sent again"] == 0,
        ),
        Shape(
            "windows below a packet keep the queue of the largest incast below that with whole packets",
            "section 3.4",
            lambda measured: measured["queue, below a packet"] < measured["queue, whole packets"],
        ),
    ],
)
