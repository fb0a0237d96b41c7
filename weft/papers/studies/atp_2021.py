"""ATP: several jobs that reduce at once, in switches and by parameter servers."""

from __future__ import annotations

from typing import Any

from weft.papers.study import Findings, Setting, Shape, Study, Value
from weft.papers.trees import virtual
from weft.quantities.units import PS_PER_US
from weft.results.report_parts import Axis, BarFigure
from weft.trials import Procedure, Trial, TrialRun

_WORKERS = 8
_SERVERS, _SWITCHES = "parameter servers", "switches"
_COMPUTE_PS = 1


def _tree(jobs: int, size: str, how: str) -> dict[str, Any]:
    per_leaf = _WORKERS // 2 * jobs
    halves = [range(_WORKERS // 2 * job, _WORKERS // 2 * (job + 1)) for job in range(jobs)]
    items: list[dict[str, Any]] = []
    for half in halves:
        ranks = [*half, *(rank + per_leaf for rank in half)]
        if how == _SWITCHES:
            items.append(
                {
                    "collective": "allreduce",
                    "algorithms": ["in-network"],
                    "sizes": [size],
                    "ranks": ranks,
                    "dtype": "int32",
                }
            )
        else:
            items.append(
                {
                    "parameter_server": _WORKERS,
                    "parameters": size,
                    "workers": _WORKERS,
                    "compute": f"{_COMPUTE_PS}ps",
                    "memory_bandwidth_gb_per_s": 1_000_000,
                    "colocated": True,
                    "ranks": ranks,
                }
            )
    return virtual(
        "atp-2021",
        mtu=4096,
        fabric={
            "planes": 1,
            "leaves": 2,
            "spines": 1,
            "hosts_per_leaf": per_leaf,
            "host_rate": "100Gb/s",
            "oversubscription": 1,
            "queue_capacity": "16MiB",
        },
        transport={"retransmission": "selective-repeat"},
        traffic=[{"together": items}],
    )


def _procedure(setting: Setting) -> Procedure[Findings]:
    jobs, size = (4, "16MiB") if setting.is_full else (2, "2MiB")
    cases = [(count, how) for count in (1, jobs) for how in (_SERVERS, _SWITCHES)]
    runs = yield [Trial(f"{count} jobs, {how}", _tree(count, size, how)) for count, how in cases]
    slowest_us = {(count, how): _slowest_us(run, how) for (count, how), run in zip(cases, runs, strict=True)}
    measured = {
        "speed-up, shared": slowest_us[jobs, _SERVERS] / slowest_us[jobs, _SWITCHES],
        "slowdown by sharing": slowest_us[jobs, _SWITCHES] / slowest_us[1, _SWITCHES],
    }
    figure = BarFigure(
        f"A step of the slowest job ({size} a worker)",
        Axis("time (µs)", "µs"),
        [f"{count} jobs, {how}" for count, how in cases],
        {"step": [round(slowest_us[case], 2) for case in cases]},
    )
    return Findings(measured, figures=[figure])


def _slowest_us(run: TrialRun, how: str) -> float:
    found = run.results_of("collectives" if how == _SWITCHES else "parameter_servers")
    return float(max(each.time_ps for each in found) / PS_PER_US)


KIND = Study(
    name="atp-2021",
    title="ATP: In-network Aggregation for Multi-tenant Learning",
    authors="Lao et al.",
    venue="NSDI",
    year=2021,
    measured=(
        "Training throughput of jobs that share a cluster and its switches' memory: up to 38 to 66 % more than with "
        "existing systems."
    ),
    run=(
        "Four jobs of eight workers at 100 Gb/s on two racks reduce 16 MiB at once, in the switches and by parameter "
        "servers on the workers' hosts. Communication alone, so the published gain of training is not judged. Weft's "
        "jobs have slots of their own: ATP's best effort, where packets without a slot go on to a server, is not part "
        "of Weft."
    ),
    reduced="two jobs, 2 MiB.",
    procedure=_procedure,
    values=[
        Value(
            "speed-up, shared",
            "for orientation: speed-up of jobs that share the fabric (published: of training)",
            1.66,
            "",
            "abstract: up to 38 to 66 %",
            when=(),
        ),
    ],
    shapes=[
        Shape(
            "jobs that share switches reduce faster than by parameter servers",
            "abstract",
            lambda measured: measured["speed-up, shared"] > 1,
        ),
        Shape(
            "sharing the switches costs a job less than a tenth of its time",
            "abstract (equitable sharing of switch resources)",
            lambda measured: measured["slowdown by sharing"] < 1.1,
        ),
    ],
)
