"""Rail-only: collectives on rails without spines, compared with a rail-optimised fabric that has them."""

from __future__ import annotations

from typing import Any

from weft.papers.collectives import times_us
from weft.papers.study import Findings, Scale, Setting, Study, Value
from weft.papers.trees import SPRAYED_SWIFT, virtual
from weft.results.report_parts import Axis, BarFigure
from weft.trials import Procedure, Trial

_RAILS, _OPTIMISED = "rail-only", "rail-optimised"
_ALL_REDUCE_BYTES, _ALL_TO_ALL_BYTES = 8 << 20, 1 << 20
_GPUS_PER_HOST = 8


def _tree(setting: Setting, fabric: str, collective: str) -> dict[str, Any]:
    gpus = 256 if setting.is_full else 64
    common: dict[str, Any] = {
        "host_rate": "100Gb/s",
        "queue_capacity": "4MiB",
        "ranks_per_host": _GPUS_PER_HOST,
        "planes": 1,
        "rail_optimised": True,
        "scale_up": {"rate": "3600Gb/s"},
    }
    sections: dict[str, dict[str, Any]] = {
        # Half of the hosts of a block: rails change leaves, so that the spines carry something.
        _OPTIMISED: {"leaves": 16, "spines": 16, "hosts_per_leaf": gpus // 16, "oversubscription": 1},
        _RAILS: {"kind": "rail_only", "hosts_per_leaf": gpus // _GPUS_PER_HOST},
    }
    size = _ALL_REDUCE_BYTES if collective == "allreduce" else _ALL_TO_ALL_BYTES
    algorithms = ["hierarchical"] if collective == "allreduce" or fabric == _RAILS else ["direct", "hierarchical"]
    return virtual(
        "rail-only-2023",
        mtu=4096,
        fabric=common | sections[fabric],
        transport=SPRAYED_SWIFT,
        traffic=[{"collective": collective, "algorithms": algorithms, "sizes": [size], "data": "lengths"}],
    )


def _procedure(setting: Setting) -> Procedure[Findings]:
    cases = [(fabric, collective) for collective in ("allreduce", "alltoall") for fabric in (_OPTIMISED, _RAILS)]
    runs = yield [
        Trial(f"{collective} on {fabric}", _tree(setting, fabric, collective)) for fabric, collective in cases
    ]
    times = {case: times_us(run) for case, run in zip(cases, runs, strict=True)}
    all_reduce = {
        fabric: times[fabric, "allreduce"]["hierarchical", _ALL_REDUCE_BYTES] for fabric in (_OPTIMISED, _RAILS)
    }
    forwarded = times[_RAILS, "alltoall"]["hierarchical", _ALL_TO_ALL_BYTES]
    through_spines = min(times[_OPTIMISED, "alltoall"].values())
    measured = {
        "all-reduce, rail-only over rail-optimised": all_reduce[_RAILS] / all_reduce[_OPTIMISED],
        "all-to-all, rail-only over rail-optimised": forwarded / through_spines,
    }
    figure = BarFigure(
        "Collectives on both fabrics",
        Axis("time (µs)", "µs"),
        [
            *(f"all-reduce of 8 MiB, {fabric}" for fabric in all_reduce),
            f"all-to-all of 1 MiB, {_OPTIMISED} (the faster of direct and hierarchical)",
            f"all-to-all of 1 MiB, {_RAILS}",
        ],
        {"time": [round(each, 1) for each in (*all_reduce.values(), through_spines, forwarded)]},
    )
    return Findings(measured, figures=[figure])


KIND = Study(
    name="rail-only-2023",
    title="Rail-only: A Low-Cost High-Performance Network for Training LLMs with Trillion Parameters",
    authors="Wang et al.",
    venue="arXiv 2307.12169,",
    year=2023,
    measured=(
        "By a model of a training iteration: rails without spines train as fast as a rail-optimised fabric of full "
        "bisection, and all-to-alls, whose data is forwarded inside hosts, take 8.2 to 11.2 % longer."
    ),
    run=(
        "A hierarchical all-reduce of 8 MiB and all-to-alls of 1 MiB on 256 GPUs, eight a host, 100 Gb/s each, "
        "3.6 Tb/s inside a host: on eight rails of one switch, and on 16 leaves and 16 spines without oversubscription."
    ),
    reduced="64 GPUs.",
    procedure=_procedure,
    values=[
        Value(
            "all-to-all, rail-only over rail-optimised",
            "all-to-all: rail-only over rail-optimised, at most",
            1.112,
            "",
            "abstract: 8.2 to 11.2 % longer",
            0.05,
            bound="most",
            when=(Scale.FULL, Scale.REDUCED),
        ),
        Value(
            "all-reduce, rail-only over rail-optimised",
            "all-reduce: rail-only over rail-optimised, at most",
            1.0,
            "",
            "abstract: the same training performance",
            0.05,
            bound="most",
            when=(Scale.FULL, Scale.REDUCED),
        ),
    ],
)
