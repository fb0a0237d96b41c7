"""DeepSeek-V3's 2,048 GPUs in planes, over rails and over three tiers: bandwidth, price of an endpoint, latency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.cost import bill_of, read_prices
from weft.papers.flow_times import FlowTimes
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.trees import SPRAYED_SWIFT, listed_flows, virtual
from weft.quantities.units import PS_PER_US
from weft.results.collectives import CollectiveResult
from weft.results.report_parts import Cell, ReportTable
from weft.scenario import parse_scenario
from weft.scenario.topology import build_topology
from weft.topologies import FabricSpec
from weft.topologies.kinds.fat_tree import fat_tree
from weft.topologies.kinds.leaf_spine import leaf_spine
from weft.trials import Procedure, Trial, TrialRun

_GPUS_PER_HOST = 8
_MULTI_PLANE, _MULTI_RAIL, _THREE_TIERS = "multi-plane", "multi-rail", "three tiers"
_FABRICS = (_MULTI_PLANE, _MULTI_RAIL, _THREE_TIERS)
_BYTES = {Scale.FULL: 2 << 20, Scale.REDUCED: 1 << 20}
_RATE_BPS = 400e9
_APART_US = 100
_SAME_PLANE, _ACROSS_PLANES = "in a plane", "across planes"
_TABLE_3 = "table 3"
_ALL_TO_ALL = {"collective": "alltoall", "algorithms": ["direct"], "data": "lengths"}
_HOSTS: dict[str, Any] = {
    "planes": 1,
    "host_rate": "400Gb/s",
    "delay": "500ns",
    "queue_capacity": "16MiB",
    "ranks_per_host": _GPUS_PER_HOST,
    "rail_optimised": True,
    "scale_up": {"rate": "1280Gb/s"},
}


def _tree(setting: Setting, fabric: str) -> dict[str, Any]:
    """All-to-alls between hosts, in all planes at once, on 2,048 GPUs and switches of 64 ports.

    They are what crosses the network of a hierarchical all-to-all. In three tiers, parallel links of two switches are
    one of all their rate.
    """
    hosts, blocks = (32, 8) if setting.is_full else (4, 2)
    few = hosts // 8 or 1
    sections: dict[str, dict[str, Any]] = {
        # Eight leaves of 32 hosts in each plane, and four spines; each is eight here, with a link to each leaf.
        _MULTI_PLANE: {"kind": "rail_only", "blocks": blocks, "spines_per_rail": hosts},
        # 64 leaves and 32 spines, each with a link to each.
        _MULTI_RAIL: {"leaves": blocks * _GPUS_PER_HOST, "spines": hosts, "oversubscription": 1},
        # Eight pods of eight leaves and eight spines, and 32 cores.
        _THREE_TIERS: {
            "kind": "fat_tree",
            "pods": blocks,
            "leaves": _GPUS_PER_HOST,
            "spines": hosts // 4,
            "cores_per_spine": few,
            "oversubscription": 1,
            "core_oversubscription": 1,
        },
    }
    tree = _HOSTS | {"hosts_per_leaf": hosts} | sections[fabric]
    rails = [
        {**_ALL_TO_ALL, "sizes": [_BYTES[setting.scale]], "ranks": list(ranks)}
        for ranks in zip(*_hosts_of(tree), strict=True)
    ]
    return virtual("mpft-2025", mtu=4096, fabric=tree, transport=SPRAYED_SWIFT, traffic=[{"together": rails}])


def _hosts_of(fabric: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Return the fabric's ranks of each host, in order of their planes."""
    found = build_topology(parse_scenario({"name": "mpft-2025", "fabric": dict(fabric)}, "mpft-2025").fabric)
    assert found.scale_up is not None, "hosts have several ranks"
    return [tuple(ranks) for ranks in found.scale_up.hosts(found.rank_count)]


_PAIRS = {(0, 1): (_SAME_PLANE, "one leaf"), (0, 2): (_SAME_PLANE, "two leaves")} | {
    (1, 1): (_ACROSS_PLANES, "one leaf"), (1, 2): (_ACROSS_PLANES, "two leaves")
}  # fmt: skip
"""By plane and host of the receiver, whose peer is the first GPU of the first host."""


def _latency_tree() -> dict[str, Any]:
    """Messages of 64 B, one at a time, between GPUs of a plane and, sent on inside the host, of two planes."""
    fabric = _HOSTS | {"kind": "rail_only", "blocks": 2, "hosts_per_leaf": 2, "spines_per_rail": 1}
    hosts = _hosts_of(fabric)
    flows = [[hosts[0][0], hosts[host][plane], 64, _APART_US * number] for number, (plane, host) in enumerate(_PAIRS)]
    return virtual(
        "mpft-2025",
        mtu=4096,
        fabric=fabric,
        transport=SPRAYED_SWIFT,
        observe={"flows": True},
        traffic=[listed_flows(flows)],
    )


def _latencies_us(run: TrialRun) -> dict[tuple[str, str], float]:
    flows = FlowTimes.of_run(run)
    # A relay's flow starts when the message has reached it inside the host; the message started at its planned time.
    ends_us = ((flows.start_ps + flows.completion_ps) / PS_PER_US).tolist()
    return {
        pair: end_us - number * _APART_US
        for number, (pair, end_us) in enumerate(zip(_PAIRS.values(), ends_us, strict=True))
    }


def _endpoint_costs(setting: Setting) -> dict[str, float]:
    """Prices of an endpoint by `weft cost`, with its NIC: at the sizes of table 3, or on switches of half the ports."""
    half, table = 32 if setting.is_full else 16, read_prices()

    def planes(count: int) -> FabricSpec:
        return leaf_spine(
            planes=count, leaves=2 * half, spines=half, hosts_per_leaf=half, host_rate_bps=_RATE_BPS,
            fabric_rate_bps=_RATE_BPS,
        )  # fmt: skip

    three_tiers = fat_tree(planes=1, k=2 * half, host_rate_bps=_RATE_BPS)
    multi_plane = planes(_GPUS_PER_HOST)
    return {
        "two tiers": bill_of(planes(1), table).price / len(planes(1).hosts),
        _MULTI_PLANE: bill_of(multi_plane, table, _GPUS_PER_HOST).price / len(multi_plane.hosts) / _GPUS_PER_HOST,
        _THREE_TIERS: bill_of(three_tiers, table).price / len(three_tiers.hosts),
    }


def _slowest(run: TrialRun) -> CollectiveResult:
    """Return the result of the plane that took longest; all begin at the same time."""
    results: list[CollectiveResult] = run.results_of("collectives")
    return max(results, key=lambda each: each.time_ps)


def _bandwidths(slowest: Mapping[str, CollectiveResult]) -> ReportTable:
    rows: list[list[Cell]] = [
        [fabric, each.ranks, round(each.time_ps / PS_PER_US, 2), round(each.busbw_bytes_per_s / 1e9, 2)]
        for fabric, each in slowest.items()
    ]
    columns = ["fabric", "GPUs of a plane", "time of the slowest (us)", "bus bandwidth of the slowest (GB/s)"]
    return ReportTable("All-to-alls of all planes at once", columns, rows)


def _latency_note(measured: Mapping[str, float]) -> str:
    inside, across = measured["latency in a plane"], measured["latency across planes"]
    return (
        f"A message of 64 B between hosts of two leaves is acknowledged after {inside:.2f} us in a plane and "
        f"{across:.2f} us across planes, where a GPU of the sender's host sends it on. Links of 500 ns make up these "
        "times; NICs and software take none. Table 5 has these too: 3.7 us over InfiniBand, 3.33 us over NVLink."
    )


def _procedure(setting: Setting) -> Procedure[Findings]:
    *runs, messages = yield [
        *(Trial(f"all-to-all, {fabric}", _tree(setting, fabric)) for fabric in _FABRICS),
        Trial("latency of 64 B", _latency_tree()),
    ]
    slowest = {fabric: _slowest(run) for fabric, run in zip(_FABRICS, runs, strict=True)}
    latencies_us, costs = _latencies_us(messages), _endpoint_costs(setting)
    measured = {
        "planes over rails": slowest[_MULTI_PLANE].time_ps / slowest[_MULTI_RAIL].time_ps,
        "planes over three tiers": slowest[_MULTI_PLANE].time_ps / slowest[_THREE_TIERS].time_ps,
        "latency in a plane": latencies_us[_SAME_PLANE, "two leaves"],
        "latency across planes": latencies_us[_ACROSS_PLANES, "two leaves"],
        "price of three tiers over planes": costs[_THREE_TIERS] / costs[_MULTI_PLANE],
        "price of planes over two tiers": costs[_MULTI_PLANE] / costs["two tiers"],
    }
    tables = [
        _bandwidths(slowest),
        ReportTable(
            "Time of a message of 64 B (us)",
            ["between GPUs", "one leaf", "two leaves"],
            [
                [where, *(round(latencies_us[where, leaves], 3) for leaves in ("one leaf", "two leaves"))]
                for where in (_SAME_PLANE, _ACROSS_PLANES)
            ],
        ),
        ReportTable("Price of an endpoint ($)", ["fabric", "$"], [[name, round(each)] for name, each in costs.items()]),
    ]
    return Findings(measured, tables, notes=[_latency_note(measured)])


KIND = Study(
    name="mpft-2025",
    title="Insights into DeepSeek-V3: Scaling Challenges and Reflections on Hardware for AI Architectures",
    authors="Zhao et al.",
    venue="ISCA",
    year=2025,
    measured=(
        "On 2,048 H800s with 400 Gb/s each: all-to-alls and training are as fast over a multi-plane as over a "
        "multi-rail fat tree. By table 3 an endpoint costs 4.39 k$ in a multi-plane tree of 16,384 endpoints and 7.5 "
        "k$ in one of three tiers and 65,536. Messages between planes are forwarded inside hosts."
    ),
    run=(
        "What an all-to-all of 2 MiB on 2,048 GPUs sends between 256 hosts, in all planes at once, over switches of 64 "
        "ports: eight planes of two tiers, rails of two tiers, a tree of three tiers, where parallel links of two "
        "switches are one link of all their rate. Messages of 64 B in a plane and across planes. Endpoints are priced "
        "by weft cost, NICs included, at the sizes of table 3."
    ),
    reduced="64 GPUs on eight hosts, 1 MiB; prices of trees of switches with 32 ports.",
    procedure=_procedure,
    values=[
        Value(
            "planes over rails",
            "time of all-to-alls, planes over rails",
            1.0,
            "",
            "figures 5 and 6, 32 to 128 GPUs; training on 2,048, table 4",
            0.02,
            when=(Scale.FULL, Scale.REDUCED),
        ),
        Value(
            "price of three tiers over planes",
            "price of an endpoint, three tiers over planes",
            7.5 / 4.39,
            "",
            _TABLE_3,
        ),
    ],
    shapes=[
        Shape(
            "an endpoint costs more in three tiers than in planes",
            _TABLE_3,
            lambda measured: measured["price of three tiers over planes"] > 1,
        ),
        Shape(
            "planes are no slower than three tiers",
            "section 5.1",
            lambda measured: measured["planes over three tiers"] < 1.02,
        ),
        Shape(
            "messages between planes take longer, as they are sent on inside a host",
            "section 5.1",
            lambda measured: measured["latency across planes"] > measured["latency in a plane"],
        ),
    ],
)
