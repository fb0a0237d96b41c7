"""Philly: locality, waiting and fragmentation of jobs on a shared cluster of GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.quantities.definitions import UNITS_REQUIRED
from weft.quantities.units import PS_PER_US
from weft.results.report_parts import ReportTable
from weft.scenario.schedule import ScheduleSection
from weft.scheduling import Cluster, Run, cluster_of_fabric, simulate, workload_of
from weft.scheduling.policies import POLICIES
from weft.scheduling.spread import NoSlowdown
from weft.topologies import leaf_spine
from weft.trials import Procedure, Trial

_SUMMARY = "data/cluster_summary.csv of AcmeTrace, the artefact of Hu et al. (NSDI 2024)"
_MEAN_GPUS, _MEAN_S, _MEDIAN_S = 1.928, 18_006.055, 874.0
_MEAN_WAIT_S = 3760.604
# Shares of sizes are not published; these have the published mean.
_SIZES = {1: 0.8274, 2: 0.04, 4: 0.052, 8: 0.06, 16: 0.0206}
_GPUS_PER_SERVER = 8
_SERVERS = 16
_LOAD = 0.9
_DRAWS = {Scale.FULL: (5, 40_000), Scale.REDUCED: (1, 8_000)}
_ALL_REDUCE = "4MiB"
_COMPUTE_US = 2_000.0
_ONE, _SEVERAL, _ANY = "one server", "two servers, packed", "two servers, four GPUs of each"
_PLACES: Mapping[str, Sequence[int]] = {
    _ONE: range(8),
    _SEVERAL: range(16),
    _ANY: [*range(4), *range(8, 12)],
}
"""Ranks of a job, with eight to a server."""
_ACROSS = "jobs that may lie across servers"
_WITHIN = "jobs that wait for whole servers"


def _section(jobs: int, is_consolidated: bool) -> ScheduleSection:
    keys: dict[str, Any] = {
        "jobs": jobs,
        "load": _LOAD,
        "accelerators_per_host": _GPUS_PER_SERVER,
        "sizes": [{"accelerators": size, "share": share} for size, share in _SIZES.items()],
        "run_time": {"mean": f"{_MEAN_S}s", "median": f"{_MEDIAN_S}s"},
        "consolidated": is_consolidated,
    }
    return ScheduleSection.model_validate(keys, context={UNITS_REQUIRED: True})


def _simulated(cluster: Cluster, scale: Scale, is_consolidated: bool) -> list[Run]:
    """Return runs of jobs that need their GPUs on as few servers as hold them, or take any."""
    draws, jobs = _DRAWS[scale]
    section = _section(jobs, is_consolidated)
    policy = POLICIES.named("kueue")
    workloads = [workload_of(section, cluster, (1, number)).jobs for number in range(draws)]
    return [simulate(cluster, each, policy, section, NoSlowdown(), (1,)) for each in workloads]


def _waits_s(runs: Sequence[Run], least: int, most: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([r.waited_s for run in runs for r in run.records if least <= r.job.accelerators <= most])


def _unusable(runs: Sequence[Run]) -> float:
    """Return the share of free GPUs that no waiting job could use, over all of the time."""
    unusable_s = free_s = 0.0
    for run in runs:
        at_s, used, _, _, unusable = np.array(run.states, dtype=np.float64).T
        lengths_s = np.diff(np.clip(at_s, None, run.records[-1].job.arrival_s))
        unusable_s += float(lengths_s @ unusable[:-1])
        free_s += float(lengths_s @ (_SERVERS * _GPUS_PER_SERVER - used[:-1]))
    return unusable_s / free_s


def _procedure(setting: Setting) -> Procedure[Findings]:
    trials = yield [_trial(name, list(ranks)) for name, ranks in _PLACES.items()]
    times_us = {
        name: trial.results_of("collectives")[0].time_ps / PS_PER_US
        for name, trial in zip(_PLACES, trials, strict=True)
    }
    cluster = cluster_of_fabric(
        leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=_SERVERS // 2), _GPUS_PER_SERVER
    )
    within, across = (_simulated(cluster, setting.scale, each) for each in (True, False))
    measured = {"mean wait": float(_waits_s(within, 1, 16).mean()), "mean GPUs": _mean_gpus(within)}
    rows = []
    for words, runs in ((_WITHIN, within), (_ACROSS, across)):
        waits = {
            "1": _waits_s(runs, 1, 1),
            "2-4": _waits_s(runs, 2, 4),
            "8": _waits_s(runs, 8, 8),
            "16": _waits_s(runs, 16, 16),
        }
        measured |= {f"{words}, p95 wait of {size}": float(np.percentile(own, 95)) for size, own in waits.items()}
        measured[f"{words}, unusable"] = _unusable(runs)
        rows.append(
            [words, *(f"{np.percentile(own, 95) / 60:,.1f}" for own in waits.values()), f"{_unusable(runs):.1%}"]
        )
    measured |= {f"utilisation, {name}": _COMPUTE_US / (_COMPUTE_US + time_us) for name, time_us in times_us.items()}
    columns = ["placement", *(f"{size} GPUs (min)" for size in ("1", "2-4", "8", "16")), "free GPUs that none can use"]
    use = [[name, f"{time_us:,.1f}", f"{measured[f'utilisation, {name}']:.1%}"] for name, time_us in times_us.items()]
    return Findings(
        measured,
        tables=[
            ReportTable("Wait of 95 % of jobs, by size", columns, rows),
            ReportTable("All-reduce of 4 MiB by placement", ["placement", "time (us)", "use of GPUs"], use),
        ],
    )


def _mean_gpus(runs: Sequence[Run]) -> float:
    return float(np.mean([record.job.accelerators for run in runs for record in run.records]))


def _trial(name: str, ranks: list[int]) -> Trial:
    collective = {
        "collective": "allreduce",
        "algorithms": ["ring"],
        "sizes": [_ALL_REDUCE],
        "data": "lengths",
        "ranks": ranks,
    }
    return Trial(
        f"an all-reduce on {name}",
        {
            "clock": "virtual",
            "fabric": {
                "planes": 1,
                "leaves": 2,
                "spines": 1,
                "hosts_per_leaf": 1,
                "ranks_per_host": _GPUS_PER_SERVER,
                "host_rate": "12.5Gb/s",
                "fabric_rate": "100Gb/s",
                "scale_up": {"rate": "100Gb/s"},
            },
            "traffic": [collective],
        },
    )


KIND = Study(
    name="philly-2019",
    title="Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
    authors="Jeon et al.",
    venue="USENIX ATC",
    year=2019,
    measured=(
        "Jobs of five months on a shared cluster: how long they wait by their number of GPUs (figure 3), how waits and "
        "servers of large jobs go together (figure 4), and how much their GPUs are used (figure 6). Figures are those "
        "that the authors' notebook draws from the published trace (analysis/ in msr-fiddle/philly-traces)."
    ),
    run=(
        "One virtual cluster: jobs with the trace's mean number of GPUs and its mean and median run time "
        f"({_SUMMARY}), on {_SERVERS} servers of {_GPUS_PER_SERVER} GPUs at a load of {_LOAD:.0%}, each placed once on "
        "as few servers as hold it, and once on any GPUs. The shares of sizes, the load and the number of servers are "
        "not in what is published: with 64 servers and as many jobs the cluster hardly fills, and no order of waits "
        "shows. Use of GPUs: an all-reduce of 4 MiB for each 2 ms of computing, where a GPU has an eighth of its "
        "server's NIC."
    ),
    reduced="One draw of 8,000 jobs instead of five of 40,000.",
    procedure=_procedure,
    values=[
        Value(
            "mean GPUs", "mean number of GPUs of a job, by shares that have it", _MEAN_GPUS, "", _SUMMARY, 0.05, when=()
        ),
        Value(
            "mean wait",
            "mean wait of jobs; published: of all virtual clusters (their loads are not)",
            _MEAN_WAIT_S,
            "s",
            _SUMMARY,
            when=(),
        ),
    ],
    shapes=[
        Shape(
            "jobs of more than 8 GPUs wait longer than jobs of one",
            "figure 3 (virtual clusters ee9e8c, 2869ce, 6c71a0, 11cb48)",
            lambda measured: measured[f"{_WITHIN}, p95 wait of 16"] > measured[f"{_WITHIN}, p95 wait of 1"],
        ),
        Shape(
            "the longest waits of jobs of 5 to 8 GPUs are of those on one server; across servers they wait less",
            "figure 4",
            lambda measured: measured[f"{_WITHIN}, p95 wait of 8"] > 2 * measured[f"{_ACROSS}, p95 wait of 8"],
        ),
        Shape(
            "free GPUs lie where large jobs cannot use them, as far as these insist on whole servers",
            "figure 4 (what jobs on one server wait for)",
            lambda measured: measured[f"{_WITHIN}, unusable"] > 2 * measured[f"{_ACROSS}, unusable"],
        ),
        Shape(
            "jobs of 16 GPUs on two servers use their GPUs less than jobs of 8 on one",
            "figure 6",
            lambda measured: measured[f"utilisation, {_SEVERAL}"] < measured[f"utilisation, {_ONE}"],
        ),
    ],
)
