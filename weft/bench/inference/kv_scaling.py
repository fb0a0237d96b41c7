"""5.3 Concurrent KV Cache Transfer Scaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.bench.figures import curve
from weft.bench.flow_groups import FlowGroups
from weft.bench.measures import busiest_uplink_share, repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.arrays import Integers
from weft.quantities.fairness import jain_index
from weft.quantities.readable import counted, format_size
from weft.quantities.units import MIB, PS_PER_US
from weft.results.report_parts import Axis, CurveFigure, ReportTable
from weft.trials import Procedure, Trial, TrialRun

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, eq=False)
class _Scaling:
    """A trial of so many pairs; `times_ps` of all blocks, each from when the one before it had arrived."""

    bytes_per_s: float
    times_ps: Integers
    fairness: float
    busiest: float

    def percentile_us(self, percentile: float) -> float:
        """Return a percentile of the blocks' times."""
        return float(np.percentile(self.times_ps, percentile)) / PS_PER_US


class KvScaling(BenchTest):
    """Pairs of prefill and decode endpoints that transfer blocks without a pause."""

    section = "5.3"
    name = "kv-scaling"
    title = "Concurrent KV Cache Transfer Scaling"
    objective = "How aggregate KV cache throughput and a block's latency change with the number of pairs."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        one_way = [pair for pair in setup.subject.pairs if pair[0] < pair[1]]
        if not one_way:
            raise NotApplicableError("the fabric has one host")
        possible = sorted({*(count for count in COUNTS if count < len(one_way)), len(one_way)})
        counts = setup.choose(smoke=(possible[0], possible[-1]), standard=tuple(possible), full=tuple(possible))
        size = setup.choose(smoke=MIB, standard=4 * MIB, full=16 * MIB)
        blocks = setup.choose(smoke=6, standard=12, full=1000)
        iterations = setup.choose(smoke=1, standard=3, full=20)
        keys = [(count, number) for count in counts for number in range(iterations if count == counts[-1] else 1)]
        groups = {count: _groups(setup, one_way[:count], size, blocks) for count in counts}

        def trial(count: int, iteration: int) -> Trial:
            return setup.trial(
                f"{counted(count, 'pair')}, {format_size(size)} blocks",
                [groups[count].item(setup)],
                iteration=iteration,
            )

        runs = dict(zip(keys, (yield [trial(*key) for key in keys]), strict=True))
        found = {key: _found(setup, groups[key[0]], blocks, run) for key, run in runs.items()}
        first = [found[count, 0] for count in counts]
        most = first[-1]
        condition = f"{counted(counts[-1], 'pair')}, {format_size(size)} blocks"
        return Measured(
            tables=[
                ReportTable(
                    f"Concurrent transfers of {format_size(size)}",
                    ["pairs", "aggregate GB/s", "GB/s a pair", "P50 (us)", "P99 (us)", "JFI", "busiest link (%)"],
                    [
                        [
                            count,
                            round(each.bytes_per_s / 1e9, 3),
                            round(each.bytes_per_s / 1e9 / count, 3),
                            round(each.percentile_us(50), 2),
                            round(each.percentile_us(99), 2),
                            round(each.fairness, 4),
                            round(100 * each.busiest, 1),
                        ]
                        for count, each in zip(counts, first, strict=True)
                    ],
                    "the busiest link is one between switches; a block's time begins when the one before has arrived",
                )
            ],
            curves=[
                CurveFigure(
                    "Aggregate throughput by pairs",
                    Axis("concurrent pairs"),
                    Axis("throughput (GB/s)", "GB/s"),
                    [curve("all pairs", counts, [each.bytes_per_s / 1e9 for each in first])],
                    note="JFI: "
                    + ", ".join(f"{count}: {each.fairness:.3f}" for count, each in zip(counts, first, strict=True)),
                ),
                CurveFigure(
                    "Latency by pairs",
                    Axis("concurrent pairs"),
                    Axis("latency of a block (us)", "us"),
                    [
                        curve(f"P{percentile}", counts, [each.percentile_us(percentile) for each in first])
                        for percentile in (50, 99)
                    ],
                ),
            ],
            kpis=[
                KpiValue("KV_xfer_bandwidth", most.bytes_per_s / 1e9, f"aggregate, {condition}"),
                KpiValue("KV_xfer_latency", most.percentile_us(99), f"P99, {condition}"),
                KpiValue("Fabric_FCT", most.percentile_us(50), f"median, {condition}"),
                KpiValue("Link_utilization", 100 * most.busiest, condition),
            ],
            repeatability=[
                repeatability(
                    f"aggregate throughput, {condition}",
                    "GB/s",
                    [found[counts[-1], number].bytes_per_s / 1e9 for number in range(iterations)],
                )
            ],
            scaled=[
                f"{counted(blocks, 'block')} of {format_size(size)} by pair in place of 60 s of 16 MB ones; "
                f"{counted(iterations, 'iteration')} of the most pairs",
                f"the fabric has {counted(len(one_way), 'pair')} of prefill and decode ranks; the draft goes to 128",
            ],
        )


def _groups(setup: Setup, pairs: Sequence[tuple[int, int]], size: int, blocks: int) -> FlowGroups:
    """Return blocks pair by pair, all posted at the start: each pair sends one behind the other."""
    found = FlowGroups()
    for source, destination in pairs:
        for _ in range(blocks):
            found.add(setup.transfer(source, destination, size))
    return found


def _found(setup: Setup, groups: FlowGroups, blocks: int, run: TrialRun) -> _Scaling:
    times = groups.times(run)
    ends = np.sort((times.start_ps + times.latency_ps).reshape(-1, blocks), axis=1)
    own = np.diff(ends, axis=1, prepend=times.start_ps.reshape(-1, blocks)[:, :1])
    rates = times.size_bytes.reshape(-1, blocks).sum(axis=1) / ends[:, -1]
    return _Scaling(
        times.bytes_per_s, own.ravel(), jain_index(rates.tolist()), busiest_uplink_share(run, setup.subject)
    )
