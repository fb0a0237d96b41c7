"""7.1 AllToAll Dispatch Throughput."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.bench.expert_dispatch import (
    CANONICAL,
    FORMULA_NOTE,
    Dispatches,
    ExpertModel,
    crossing_bytes,
    dispatch_count,
    even_sizes,
    expert_ranks,
    spaced,
)
from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.arrays import Integers
from weft.quantities.readable import counted, format_size
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure, Trial, TrialRun

GROUPS = (8, 16, 32, 64, 96)
BATCHES = (16, 128, 512)


@dataclass(frozen=True)
class _Key:
    """A trial: model, ranks of the group, and tokens of a rank."""

    model: ExpertModel
    ranks: int
    tokens: int


@dataclass(frozen=True, eq=False)
class _Found:
    """Latencies, bytes over the fabric of one dispatch, and how long a rank waits for what it receives, on average."""

    latency_ps: Integers
    crossing_bytes: int
    wait_ps: float

    def percentile_us(self, percentile: float) -> float:
        """Return a percentile of the latency."""
        return float(np.percentile(self.latency_ps, percentile)) / PS_PER_US

    @property
    def bytes_per_s(self) -> float:
        """Bytes over the fabric in the median latency."""
        return self.crossing_bytes * PS_PER_S / float(np.median(self.latency_ps))


class DispatchThroughput(BenchTest):
    """All ranks of an expert-parallel group send tokens to all, by model, group and batch."""

    section = "7.1"
    name = "dispatch-throughput"
    title = "AllToAll Dispatch Throughput"
    objective = "The throughput and latency of the AllToAll dispatch of a mixture of experts."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        groups = group_sizes(setup)
        batches = setup.choose(smoke=(16, 128), standard=BATCHES, full=BATCHES)
        first, *others = CANONICAL.values()
        chosen = groups if len(groups) < 3 else setup.choose(smoke=groups[-1:], standard=groups[-2:], full=groups)
        keys = [_Key(first, ranks, tokens) for ranks in chosen for tokens in batches]
        largest = setup.choose(smoke=_Key(first, groups[-1], 128), standard=None, full=None) or _Key(
            others[-1], groups[-1], 128
        )
        keys += [_Key(model, groups[-1], 128) for model in setup.choose(smoke=[], standard=others, full=others)]
        dispatches = {key: _dispatches(setup, key) for key in keys}

        def trial(key: _Key) -> Trial:
            return setup.trial(
                f"{key.model.name}, EP={key.ranks}, {key.tokens} tokens", [dispatches[key].groups(setup).item(setup)]
            )

        runs = dict(zip(keys, (yield [trial(key) for key in keys]), strict=True))
        found = {key: _found(setup, dispatches[key], run) for key, run in runs.items()}
        condition = f"{largest.model.name}, EP={largest.ranks}, {counted(largest.tokens, 'token')} a rank"
        return Measured(
            tables=[
                ReportTable(
                    f"Throughput (GB/s) by group and batch, {first.title}",
                    ["EP group", *(f"batch {tokens}" for tokens in batches)],
                    [
                        [ranks, *(round(found[_Key(first, ranks, tokens)].bytes_per_s / 1e9, 2) for tokens in batches)]
                        for ranks in chosen
                    ],
                    "payload between hosts of all ranks over the median latency; the draft's heatmap as a table",
                ),
                ReportTable(
                    "Latency of one dispatch",
                    [
                        "model",
                        "EP group",
                        "batch",
                        "bytes a pair",
                        "P50 (us)",
                        "P99 (us)",
                        "rank waits (us)",
                        "GB/s",
                        "GB/s a rank",
                        "dispatches",
                    ],
                    [_row(key, each) for key, each in found.items()],
                    "a rank waits from the start until all for it has arrived, on average over ranks: accelerators "
                    "compute nothing meanwhile",
                ),
            ],
            curves=[
                CurveFigure(
                    f"Throughput by batch, {first.title}",
                    Axis("tokens of a rank", "", "log"),
                    Axis("throughput (GB/s)", "GB/s"),
                    [
                        curve(
                            f"EP={ranks}",
                            batches,
                            [found[_Key(first, ranks, tokens)].bytes_per_s / 1e9 for tokens in batches],
                        )
                        for ranks in chosen
                    ],
                )
            ],
            kpis=[
                KpiValue("EP_alltoall_latency", found[largest].percentile_us(99), f"P99, {condition}"),
                KpiValue("EP_alltoall_bandwidth", found[largest].bytes_per_s / 1e9, condition),
            ],
            repeatability=[
                repeatability(f"latency, {condition}", "us", (found[largest].latency_ps / PS_PER_US).tolist())
            ],
            scaled=[
                FORMULA_NOTE,
                f"{counted(len(found[largest].latency_ps), 'dispatch', 'dispatches')} of a configuration, in place of "
                "20 trials; a rank has one flow to each other rank, and flows within a host are left out",
                f"rows used: {', '.join(dict.fromkeys(key.model.title for key in keys))}",
                *(f"EP={ranks} takes more ranks than the fabric has" for ranks in GROUPS if ranks > groups[-1]),
            ],
        )


def group_sizes(setup: Setup) -> list[int]:
    """Return the draft's groups that the fabric has, and all of its ranks. NotApplicableError: it has one host."""
    if len(setup.subject.servers) < 2:
        raise NotApplicableError("a dispatch over the fabric takes 2 hosts; the fabric has one")
    ranks = setup.subject.ranks
    return sorted({*(each for each in GROUPS if setup.subject.ranks_per_host < each < ranks), min(ranks, GROUPS[-1])})


def _dispatches(setup: Setup, key: _Key) -> Dispatches:
    members = expert_ranks(setup, key.ranks)
    sizes = even_sizes(key.model, key.tokens, key.ranks)
    return spaced(setup, members, sizes, dispatch_count(setup, members, sizes))


def _found(setup: Setup, dispatches: Dispatches, run: TrialRun) -> _Found:
    groups = dispatches.groups(setup)
    crossing = int(crossing_bytes(setup, dispatches.members, dispatches.sizes).sum())
    return _Found(groups.times(run).latency_ps, crossing, groups.mean_wait_ps(run))


def _row(key: _Key, found: _Found) -> list[Cell]:
    return [
        key.model.name,
        key.ranks,
        key.tokens,
        format_size(key.model.pair_bytes(key.tokens, key.ranks)),
        round(found.percentile_us(50), 2),
        round(found.percentile_us(99), 2),
        round(found.wait_ps / PS_PER_US, 2),
        round(found.bytes_per_s / 1e9, 2),
        round(found.bytes_per_s / 1e9 / key.ranks, 3),
        len(found.latency_ps),
    ]
