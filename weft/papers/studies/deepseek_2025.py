"""DeepSeek-V3's network: planes compared with rails that meet in spines and with three tiers, by bandwidth and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.cost import bill_of, read_prices
from weft.jobs.models import MODELS, Transformer
from weft.papers.collectives import times_us
from weft.papers.flow_times import FlowTimes
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.training import H800_HOSTS, forward_hops_us, step_of, step_tree
from weft.papers.trees import SPRAYED_SWIFT, listed_flows, virtual
from weft.quantities.units import PS_PER_US
from weft.results.report_parts import Axis, Curve, CurveFigure, ReportTable
from weft.topologies import FabricSpec, with_scale_up
from weft.topologies.kinds.fat_tree import fat_tree
from weft.topologies.kinds.leaf_spine import leaf_spine
from weft.topologies.kinds.rail_only import rail_only
from weft.trials import Procedure, Trial, TrialRun

_GPUS_PER_HOST = 8
_MULTI_PLANE, _MULTI_RAIL, _THREE_TIERS = "multi-plane", "multi-rail", "three tiers"
_CLUSTER = (_MULTI_PLANE, _MULTI_RAIL, _THREE_TIERS)
_CLUSTER_BYTES = 4 << 20
_RATE_BPS = 400e9
_APART_US = 100
_SAME_PLANE, _ACROSS_PLANES = "in a plane", "across planes"
_SIZES = (256 << 10, 1 << 20, 4 << 20)
_MOST_HOSTS = 4
_PLACE = "section 5.1, figures 5 and 6"
_TABLE_3 = "table 3"
_BOTH = (Scale.FULL, Scale.REDUCED)


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
    hosts = 16 if setting.is_full else 4
    sections: dict[str, dict[str, Any]] = {
        # Each GPU's NIC is on a plane of its own; planes meet inside hosts alone.
        _MULTI_PLANE: {"kind": "rail_only", "hosts_per_leaf": hosts},
        _MULTI_RAIL: {"leaves": _GPUS_PER_HOST, "spines": 8, "hosts_per_leaf": hosts, "oversubscription": 1},
    }
    return virtual(
        "deepseek-2025",
        mtu=4096,
        fabric=_HOSTS | sections[fabric],
        transport=SPRAYED_SWIFT,
        traffic=[_all_to_all(*_SIZES)],
    )


def _all_to_all(*sizes: int) -> dict[str, Any]:
    return {"collective": "alltoall", "algorithms": ["hierarchical"], "sizes": list(sizes), "data": "lengths"}


def _cluster_tree(setting: Setting, fabric: str) -> dict[str, Any]:
    """The cluster of 2,048 GPUs on switches of 64 ports; parallel links of two switches are one of all their rate."""
    hosts, blocks = (32, 8) if setting.is_full else (4, 2)
    few = hosts // 8 or 1
    sections: dict[str, dict[str, Any]] = {
        # Eight leaves of 32 hosts and four spines in each plane.
        _MULTI_PLANE: {
            "kind": "rail_only",
            "blocks": blocks,
            "spines_per_rail": few,
            "fabric_rate": f"{hosts // few * 400}Gb/s",
        },
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
    return virtual(
        "deepseek-2025",
        mtu=4096,
        fabric=_HOSTS | {"hosts_per_leaf": hosts} | sections[fabric],
        transport=SPRAYED_SWIFT,
        traffic=[_all_to_all(_CLUSTER_BYTES if setting.is_full else _CLUSTER_BYTES // 16)],
    )


_PAIRS = {(0, 1): (_SAME_PLANE, "one leaf"), (0, 2): (_SAME_PLANE, "two leaves")} | {
    (1, 1): (_ACROSS_PLANES, "one leaf"), (1, 2): (_ACROSS_PLANES, "two leaves")
}  # fmt: skip
"""By plane and host of the receiver, whose peer is the first GPU of the first host."""


def _latency_tree() -> dict[str, Any]:
    """Messages of 64 B, one at a time, between GPUs of a plane and, sent on inside the host, of two planes."""
    network = rail_only(rails=_GPUS_PER_HOST, blocks=2, hosts_per_leaf=2, spines_per_rail=1)
    placed = with_scale_up(network, ranks_per_host=_GPUS_PER_HOST, rail_optimised=True)
    assert placed.scale_up is not None
    hosts = list(placed.scale_up.hosts(placed.rank_count))
    flows = [[hosts[0][0], hosts[host][plane], 64, _APART_US * number] for number, (plane, host) in enumerate(_PAIRS)]
    return virtual(
        "deepseek-2025",
        mtu=4096,
        fabric=_HOSTS | {"kind": "rail_only", "blocks": 2, "hosts_per_leaf": 2, "spines_per_rail": 1},
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


def _layer(hidden: int, tokens: int) -> Transformer:
    model = MODELS["DeepSeek-V3"]
    assert model.experts is not None
    experts = model.experts.model_copy(update={"dense_layers": 0})
    sizes = {"layers": 1, "hidden": hidden, "sequence": tokens, "vocabulary": 1024, "experts": experts}
    return model.model_copy(update=sizes)


def _experts_tree(ranks: int, hidden: int, tokens: int) -> dict[str, Any]:
    """One layer with its experts on all ranks; a token goes to four hosts at most."""
    return step_tree(
        "deepseek-2025",
        H800_HOSTS,
        _layer(hidden, tokens),
        {"data": ranks, "expert": ranks},
        micro_batches=1,
        routing={"hosts_per_token": _MOST_HOSTS},
        precisions={"dispatch": "fp8", "gradients": "bf16"},
    )


def _procedure(setting: Setting) -> Procedure[Findings]:
    fabrics = (_MULTI_PLANE, _MULTI_RAIL)
    expert_ranks, hidden, tokens = (64, 7168, 512) if setting.is_full else (16, 1024, 128)
    *runs, experts, messages = yield [
        *(Trial(f"all-to-all, {fabric}", _tree(setting, fabric)) for fabric in fabrics),
        *(Trial(f"all-to-all of the cluster, {fabric}", _cluster_tree(setting, fabric)) for fabric in _CLUSTER),
        Trial("dispatch to experts", _experts_tree(expert_ranks, hidden, tokens)),
        Trial("latency of 64 B", _latency_tree()),
    ]
    runs, of_cluster = runs[: len(fabrics)], runs[len(fabrics) :]
    cluster_us = {fabric: next(iter(times_us(run).values())) for fabric, run in zip(_CLUSTER, of_cluster, strict=True)}
    latencies_us, costs = _latencies_us(messages), _endpoint_costs(setting)
    times = {fabric: times_us(run) for fabric, run in zip(fabrics, runs, strict=True)}
    # DeepEP counts a token for each of its hosts, its sender's own among them.
    logical_bytes = tokens * min(_MOST_HOSTS, expert_ranks // _GPUS_PER_HOST) * hidden
    (dispatch_us,) = forward_hops_us(step_of(experts), "expert", 1)
    ratios = [times[_MULTI_PLANE]["hierarchical", size] / times[_MULTI_RAIL]["hierarchical", size] for size in _SIZES]
    network = leaf_spine(planes=8, leaves=64, spines=32, hosts_per_leaf=32, host_rate_bps=400e9, fabric_rate_bps=400e9)
    measured = {
        "multi-plane over multi-rail": max(ratios, key=lambda each: abs(each - 1)),
        "cluster, planes over rails": cluster_us[_MULTI_PLANE] / cluster_us[_MULTI_RAIL],
        "cluster, planes over three tiers": cluster_us[_MULTI_PLANE] / cluster_us[_THREE_TIERS],
        "latency in a plane": latencies_us[_SAME_PLANE, "two leaves"],
        "latency across planes": latencies_us[_ACROSS_PLANES, "two leaves"],
        "cost of three tiers over planes": costs[_THREE_TIERS] / costs[_MULTI_PLANE],
        "cost of planes over two tiers": costs[_MULTI_PLANE] / costs["two tiers"],
        "dispatch": logical_bytes / dispatch_us / 1e3,
        "switches": float(len(network.switches)),
        "endpoints": float(sum(len(host.nics) for host in network.hosts)),
    }
    ranks = 128 if setting.is_full else 32
    figure = CurveFigure(
        f"All-to-all of {ranks} GPUs",
        Axis("size (KiB)", "KiB", "log"),
        Axis("algorithm bandwidth (GB/s)", "GB/s"),
        [
            Curve(
                fabric,
                [size / 1024 for size in _SIZES],
                [round(size / times[fabric]["hierarchical", size] / 1e3, 3) for size in _SIZES],
            )
            for fabric in fabrics
        ],
    )
    tables = [
        _bandwidths(of_cluster),
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
    return Findings(measured, tables, [figure], [_latency_note(measured)])


def _bandwidths(runs: Sequence[TrialRun]) -> ReportTable:
    results = [run.results_of("collectives")[0] for run in runs]
    rows = [
        [fabric, each.ranks, round(each.time_ps / PS_PER_US, 2), round(each.busbw_bytes_per_s / 1e9, 2)]
        for fabric, each in zip(_CLUSTER, results, strict=True)
    ]
    return ReportTable("All-to-all of the cluster", ["fabric", "GPUs", "time (us)", "bus bandwidth (GB/s)"], rows)


def _latency_note(measured: Mapping[str, float]) -> str:
    inside, across = measured["latency in a plane"], measured["latency across planes"]
    return (
        f"A message of 64 B between hosts of two leaves is acknowledged after {inside:.2f} us in a plane and "
        f"{across:.2f} us across planes, where a GPU of the sender's host sends it on. Links of 500 ns make up these "
        "times; NICs and software take none. Table 5 has these too: 3.7 us over InfiniBand, 3.33 us over NVLink."
    )


KIND = Study(
    name="deepseek-2025",
    title="Insights into DeepSeek-V3: Scaling Challenges and Reflections on Hardware for AI Architectures",
    authors="Zhao et al.",
    venue="ISCA",
    year=2025,
    measured=(
        "On H800s with 400 Gb/s a GPU: a multi-plane fat tree of two tiers holds 16,384 endpoints with 768 switches of "
        "64 ports, and all-to-alls over it are as fast as over a multi-rail fat tree, as data changes planes inside "
        "hosts, at 4.39 k$ an endpoint where three tiers cost 7.5 k$. DeepEP dispatches tokens to experts on 64 ranks "
        "at 51 GB/s."
    ),
    run=(
        "Hierarchical all-to-alls of 256 KiB to 4 MiB on 128 GPUs, eight a host, 400 Gb/s each and 1.28 Tb/s inside a "
        "host: with a switch for each plane, and with rails that also meet in spines. All-to-alls of 4 MiB on 2,048 "
        "GPUs and switches of 64 ports: eight planes of two tiers, rails of two tiers, a tree of three tiers. The "
        "fabric of eight planes of 64 leaves and 32 spines is built and counted, and priced by weft cost next to three "
        "tiers of 65,536 endpoints. A layer of DeepSeek-V3 on 64 H800s sends 512 tokens a rank to "
        "experts on four hosts at most."
    ),
    reduced="32 GPUs; a cluster of 64; 16 H800s, 128 tokens of 1,024 a rank; prices of trees of switches of 32 ports.",
    procedure=_procedure,
    values=[
        Value(
            "dispatch",
            "dispatch to experts on 64 ranks, as DeepEP counts bytes",
            51,
            "GB/s",
            "DeepEP's repository, docs/legacy.md: version 1, 64 ranks",
        ),
        Value("switches", "switches of the multi-plane network", 768, "", "table 3", 0.0, when=_BOTH),
        Value(
            "cluster, planes over rails",
            "time of the cluster's all-to-all, planes over rails",
            1.0,
            "",
            "figures 5 and 6; of training on 2,048 GPUs, table 4",
            0.02,
        ),
        Value(
            "cost of three tiers over planes",
            "price of an endpoint, three tiers over planes",
            7.5 / 4.39,
            "",
            _TABLE_3,
        ),
        Value("endpoints", "its endpoints", 16_384, "", "table 3", 0.0, when=_BOTH),
    ],
    shapes=[
        Shape(
            "planes cost all-to-alls no more than a twentieth",
            _PLACE,
            lambda measured: measured["multi-plane over multi-rail"] < 1.05,
        ),
        Shape(
            "an endpoint costs more in three tiers than in planes",
            _TABLE_3,
            lambda measured: measured["cost of three tiers over planes"] > 1,
        ),
        Shape(
            "planes are no slower than three tiers",
            "section 5.1",
            lambda measured: measured["cluster, planes over three tiers"] < 1.02,
        ),
        Shape(
            "messages between planes take longer, as they are sent on inside a host",
            "section 5.1",
            lambda measured: measured["latency across planes"] > measured["latency in a plane"],
        ),
    ],
)
