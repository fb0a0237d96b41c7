"""SHArP: small all-reduces of 128 hosts by switches and by hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.papers.collectives import times_us
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.trees import virtual
from weft.results.report_parts import Axis, Curve, CurveFigure
from weft.trials import Procedure, Trial

_BY_HOSTS, _BY_SWITCHES = "halving-doubling", "in-network"
_SIZES = (8, 64, 512, 4096)
_ASSUMED_NIC: Mapping[str, Any] = {"dma_latency": "300ns", "per_packet_overhead": "100ns"}
_PLACE = "section on MPI_Allreduce: 128 hosts, Switch-IB 2"
_HOST_COSTS = (
    "links and switches account for 0.54 us of the published 2.83 us; how the published times divide between hosts and "
    "network is unknown, and Weft's hosts cost nothing in this run (with assumed costs: the table below)."
)
_MORE_STEPS = (
    "halving-doubling has 14 steps for 128 ranks, where MPI libraries exchange small data by recursive doubling in 7, "
    "which this study does not run; and host costs count once a step for hosts and once in the network."
)


def _tree(setting: Setting, nic: Mapping[str, Any]) -> dict[str, Any]:
    return virtual(
        "sharp-2016",
        mtu=4096,
        fabric={
            "planes": 1,
            "leaves": 8 if setting.is_full else 4,
            "spines": 4,
            "hosts_per_leaf": 16 if setting.is_full else 8,
            "host_rate": "100Gb/s",
            "oversubscription": 1,
            "delay": "50ns",
            "queue_capacity": "4MiB",
        },
        switching={"latency": "90ns"},
        aggregation={"lanes": 64},
        nic=nic,
        transport={"retransmission": "selective-repeat"},
        traffic=[
            {
                "collective": "allreduce",
                "algorithms": [_BY_HOSTS, _BY_SWITCHES],
                "dtype": "int32",
                "sizes": list(_SIZES),
            }
        ],
    )


def _procedure(setting: Setting) -> Procedure[Findings]:
    free, assumed = yield [
        Trial("hosts without costs", _tree(setting, {})),
        Trial("assumed costs of hosts", _tree(setting, _ASSUMED_NIC)),
    ]
    measured: dict[str, float] = {}
    figures = []
    for name, times in (("free", times_us(free)), ("assumed", times_us(assumed))):
        for size in _SIZES:
            hosts, switches = times[_BY_HOSTS, size], times[_BY_SWITCHES, size]
            measured |= {
                f"{size} B, hosts, {name}": hosts,
                f"{size} B, switches, {name}": switches,
                f"{size} B, ratio, {name}": hosts / switches,
            }
        figures.append(
            CurveFigure(
                f"All-reduce, {'hosts without costs' if name == 'free' else 'assumed costs of hosts'}",
                Axis("size (B)", "B", "log"),
                Axis("time (µs)", "µs", "log"),
                [
                    Curve(algorithm, _SIZES, [round(times[algorithm, size], 3) for size in _SIZES])
                    for algorithm in (_BY_HOSTS, _BY_SWITCHES)
                ],
            )
        )
    return Findings(measured, figures=figures)


KIND = Study(
    name="sharp-2016",
    title="Scalable Hierarchical Aggregation Protocol (SHArP)",
    authors="Graham et al.",
    venue="COMHPC",
    year=2016,
    measured="MPI_Allreduce on 128 hosts with Switch-IB 2, by hosts and by switches.",
    run=(
        "All-reduces of int32 on 128 hosts in two tiers of 100 Gb/s, links of 50 ns, switches of 90 ns, packets of 64 "
        "lanes; the hosts' algorithm is halving-doubling. Hosts without costs, and with assumed ones (100 ns a packet, "
        "300 ns until it is in memory)."
    ),
    reduced="32 hosts.",
    procedure=_procedure,
    values=[
        Value("8 B, hosts, free", "8 B by hosts", 6.01, "µs", _PLACE, explanation=_HOST_COSTS),
        Value("8 B, switches, free", "8 B by switches", 2.83, "µs", _PLACE, explanation=_HOST_COSTS),
        Value("4096 B, hosts, free", "4 KiB by hosts", 46.93, "µs", _PLACE, explanation=_HOST_COSTS),
        Value("4096 B, switches, free", "4 KiB by switches", 14.48, "µs", _PLACE, explanation=_HOST_COSTS),
        Value("8 B, ratio, assumed", "8 B, hosts over switches", 2.1, "", _PLACE, explanation=_MORE_STEPS),
        Value("4096 B, ratio, assumed", "4 KiB, hosts over switches", 3.24, "", _PLACE, explanation=_MORE_STEPS),
    ],
    shapes=[
        Shape(
            "switches reduce 8 B and 4 KiB faster than hosts",
            _PLACE,
            lambda measured: min(measured["8 B, ratio, free"], measured["4096 B, ratio, free"]) > 1,
            when=(Scale.FULL, Scale.REDUCED),
        ),
    ],
)
