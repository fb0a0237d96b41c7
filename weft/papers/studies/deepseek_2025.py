"""DeepSeek-V3's network: planes compared with rails that meet in spines, and tokens that go to four hosts at most."""

from __future__ import annotations

from typing import Any

from weft.jobs.models import MODELS, Transformer
from weft.papers.collectives import times_us
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.training import H800_HOSTS, forward_hops_us, step_of, step_tree
from weft.papers.trees import SPRAYED_SWIFT, virtual
from weft.results.report_parts import Axis, Curve, CurveFigure
from weft.topologies.kinds.leaf_spine import leaf_spine
from weft.trials import Procedure, Trial

_GPUS_PER_HOST = 8
_MULTI_PLANE, _MULTI_RAIL = "multi-plane", "multi-rail"
_SIZES = (256 << 10, 1 << 20, 4 << 20)
_MOST_HOSTS = 4
_PLACE = "section 5.1, figures 5 and 6"
_BOTH = (Scale.FULL, Scale.REDUCED)


def _tree(setting: Setting, fabric: str) -> dict[str, Any]:
    hosts = 16 if setting.is_full else 4
    common: dict[str, Any] = {
        "planes": 1,
        "host_rate": "400Gb/s",
        "delay": "500ns",
        "queue_capacity": "16MiB",
        "ranks_per_host": _GPUS_PER_HOST,
        "rail_optimised": True,
        "scale_up": {"rate": "1280Gb/s"},
    }
    sections: dict[str, dict[str, Any]] = {
        # Each GPU's NIC is on a plane of its own; planes meet inside hosts alone.
        _MULTI_PLANE: {"kind": "rail_only", "hosts_per_leaf": hosts},
        _MULTI_RAIL: {"leaves": _GPUS_PER_HOST, "spines": 8, "hosts_per_leaf": hosts, "oversubscription": 1},
    }
    return virtual(
        "deepseek-2025",
        mtu=4096,
        fabric=common | sections[fabric],
        transport=SPRAYED_SWIFT,
        traffic=[{"collective": "alltoall", "algorithms": ["hierarchical"], "sizes": list(_SIZES), "data": "lengths"}],
    )


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
    *runs, experts = yield [
        *(Trial(f"all-to-all, {fabric}", _tree(setting, fabric)) for fabric in fabrics),
        Trial("dispatch to experts", _experts_tree(expert_ranks, hidden, tokens)),
    ]
    times = {fabric: times_us(run) for fabric, run in zip(fabrics, runs, strict=True)}
    # DeepEP counts a token for each of its hosts, its sender's own among them.
    logical_bytes = tokens * min(_MOST_HOSTS, expert_ranks // _GPUS_PER_HOST) * hidden
    (dispatch_us,) = forward_hops_us(step_of(experts), "expert", 1)
    ratios = [times[_MULTI_PLANE]["hierarchical", size] / times[_MULTI_RAIL]["hierarchical", size] for size in _SIZES]
    network = leaf_spine(planes=8, leaves=64, spines=32, hosts_per_leaf=32, host_rate_bps=400e9, fabric_rate_bps=400e9)
    measured = {
        "multi-plane over multi-rail": max(ratios, key=lambda each: abs(each - 1)),
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
    return Findings(measured, figures=[figure])


KIND = Study(
    name="deepseek-2025",
    title="Insights into DeepSeek-V3: Scaling Challenges and Reflections on Hardware for AI Architectures",
    authors="Zhao et al.",
    venue="ISCA",
    year=2025,
    measured=(
        "On H800s with 400 Gb/s a GPU: a multi-plane fat tree of two tiers holds 16,384 endpoints with 768 switches of "
        "64 ports, and all-to-alls over it are as fast as over a multi-rail fat tree, as data changes planes inside "
        "hosts. DeepEP dispatches tokens to experts on 64 ranks at 51 GB/s."
    ),
    run=(
        "Hierarchical all-to-alls of 256 KiB to 4 MiB on 128 GPUs, eight a host, 400 Gb/s each and 1.28 Tb/s inside a "
        "host: with a switch for each plane, and with rails that also meet in spines. The fabric of eight planes of 64 "
        "leaves and 32 spines is built and counted. A layer of DeepSeek-V3 on 64 H800s sends 512 tokens a rank to "
        "experts on four hosts at most."
    ),
    reduced="32 GPUs; 16 H800s, 128 tokens of 1,024 a rank.",
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
        Value("endpoints", "its endpoints", 16_384, "", "table 3", 0.0, when=_BOTH),
    ],
    shapes=[
        Shape(
            "planes cost all-to-alls no more than a twentieth",
            _PLACE,
            lambda measured: measured["multi-plane over multi-rail"] < 1.05,
        ),
    ],
)
