"""DCQCN: the queue of a 20-to-1 incast, and shares of flows that PFC alone divides by ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.papers.ports import Ports
from weft.papers.study import Findings, Setting, Shape, Study, Value
from weft.papers.trees import listed_flows, star, virtual
from weft.quantities.fairness import jain_index
from weft.results.report_parts import Axis, BarFigure, Curve, CurveFigure
from weft.trials import Procedure, Trial, TrialRun

KMIN_BYTES, KMAX_BYTES = 5_000, 200_000
_PMAX = 0.01
_FROM_US, _TO_US = 15_000.0, 36_000.0
_SHORT_FROM_US, _SHORT_TO_US = 4_000.0, 8_000.0
_RECEIVER, _ALONE = 0, 1
"""Hosts of the left leaf; the three of the right one share an uplink."""
_CONTROLS: Mapping[str, Mapping[str, Any]] = {
    "PFC alone": {"congestion_control": "fixed-window", "parameters": {"window": "4MB"}},
    "DCQCN": {"congestion_control": "dcqcn", "preset": "paper-2015"},
}


def incast_tree(flows: int, pmax: float, size_bytes: int) -> dict[str, Any]:
    """Return an incast at 40 Gb/s, marked as the paper's testbed; its queue at p0l0:1 is observed."""
    return virtual(
        "dcqcn-2015",
        fabric=star(flows + 1, "40Gb/s", "500ns", queue_capacity="4MB"),
        ecn={"kmin": KMIN_BYTES, "kmax": KMAX_BYTES, "pmax": pmax},
        transport={"congestion_control": "dcqcn", "preset": "paper-2015"},
        observe={"queues": ["p0l0:1"], "interval": "10us"},
        traffic=[{"incast": "h0", "bytes_per_sender": size_bytes, "data": "lengths"}],
    )


def _shared_port_tree(control: str, size_bytes: int) -> dict[str, Any]:
    senders = [_ALONE, 3, 4, 5]
    return virtual(
        "dcqcn-2015",
        fabric={
            "planes": 1,
            "leaves": 2,
            "spines": 1,
            "hosts_per_leaf": 3,
            "host_rate": "40Gb/s",
            "delay": "500ns",
        },
        ecn={"kmin": KMIN_BYTES, "kmax": KMAX_BYTES, "pmax": _PMAX},
        pfc={"classes": [3]},
        buffer={"capacity": "12MB"},
        transport=_CONTROLS[control],
        observe={"queues": [f"h{sender}:0" for sender in senders], "interval": "100us"},
        traffic=[listed_flows([sender, _RECEIVER, size_bytes] for sender in senders)],
    )


def _procedure(setting: Setting) -> Procedure[Findings]:
    flows = 20 if setting.is_full else 2
    begin_us, end_us = (_FROM_US, _TO_US) if setting.is_full else (_SHORT_FROM_US, _SHORT_TO_US)
    all_bytes = round(end_us * 5_000)
    incast, *shared = yield [
        Trial(f"{flows}-to-1 incast", incast_tree(flows, _PMAX, all_bytes // flows)),
        *(Trial(f"shared port, {name}", _shared_port_tree(name, all_bytes)) for name in _CONTROLS),
    ]
    times_us = np.arange(begin_us, end_us, 10.0)
    depths_kb = Ports(incast)["p0l0:1"].queue_at(times_us) / 1000
    shares = {name: _shares(run, begin_us, end_us) for name, run in zip(_CONTROLS, shared, strict=True)}
    measured = {
        f"{flows} flows, 90th percentile": float(np.percentile(depths_kb, 90)),
        "Jain, DCQCN": jain_index(list(shares["DCQCN"].values())),
        "Jain, PFC alone": jain_index(list(shares["PFC alone"].values())),
        "most over median, PFC alone": shares["PFC alone"]["h1"] / float(np.median(list(shares["PFC alone"].values()))),
    }
    levels = np.arange(0, 101, 2)
    distribution = CurveFigure(
        f"Queue of a {flows}-to-1 incast",
        Axis("queue (KB)", "KB"),
        Axis("share of samples below (%)", "%"),
        [Curve("DCQCN", np.percentile(depths_kb, levels).round(2).tolist(), levels.tolist())],
    )
    bars = BarFigure(
        "Rates of four senders, three of which share an uplink",
        Axis("Gb/s", "Gb/s"),
        [f"{sender}, {name}" for name, found in shares.items() for sender in found],
        {"rate": [round(rate, 2) for found in shares.values() for rate in found.values()]},
        text="h1 has a port of its own to the receiver's leaf.",
    )
    return Findings(measured, figures=[distribution, bars])


def _shares(run: TrialRun, begin_us: float, end_us: float) -> Mapping[str, float]:
    """Return each sender's rate in Gb/s."""
    ports = Ports(run)
    return {f"h{sender}": ports[f"h{sender}:0"].rate_bps(begin_us, end_us) / 1e9 for sender in (_ALONE, 3, 4, 5)}


KIND = Study(
    name="dcqcn-2015",
    title="Congestion Control for Large-Scale RDMA Deployments",
    authors="Zhu et al.",
    venue="SIGCOMM",
    year=2015,
    measured=(
        "On a testbed of 40 Gb/s: the queue of a 20-to-1 incast (90th percentile 76.6 KB), and that flows which PFC "
        "alone serves unequally get equal shares with DCQCN."
    ),
    run=(
        "20 senders on one switch with the paper's parameters (Kmin 5 KB, Kmax 200 KB, Pmax 1 %, preset paper-2015), "
        "15 to 36 ms after they began at line rate; and four senders with PFC, three of which share an uplink."
    ),
    reduced="an incast of two senders, 4 to 8 ms after the start.",
    procedure=_procedure,
    values=[
        Value(
            "20 flows, 90th percentile",
            "queue of 20 flows, 90th percentile",
            76.6,
            "KB",
            "section 6 (testbed, 20-to-1 incast)",
            explanation=(
                "the printed parameters lead to a deeper queue: at a twentieth of the link a rate neither grows nor "
                "falls when 1.8 % of packets are marked, which marking reaches only beyond Kmax; a Pmax of 7 % would "
                "give 74 KB (docs/dcqcn.md)."
            ),
        ),
    ],
    shapes=[
        Shape(
            "with PFC alone the sender with a port of its own gets more than the others",
            "section 2 (unfairness of PFC)",
            lambda measured: measured["most over median, PFC alone"] > 1.5,
        ),
        Shape(
            "DCQCN's shares are equal (Jain's index above 0.9), and more equal than with PFC alone",
            "section 6 (fairness)",
            lambda measured: measured["Jain, DCQCN"] > max(0.9, measured["Jain, PFC alone"]),
        ),
    ],
)
