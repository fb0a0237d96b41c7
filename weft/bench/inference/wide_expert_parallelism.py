"""7.3 Wide Expert Parallelism Scaling."""

from __future__ import annotations

import numpy as np

from weft.bench.expert_dispatch import (
    CANONICAL,
    FORMULA_NOTE,
    Dispatches,
    crossing_bytes,
    dispatch_count,
    even_sizes,
    expert_ranks,
    scale_up_ps,
    spaced,
)
from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, CurveFigure, ReportTable
from weft.trials import Procedure, Trial

GROUPS = (8, 16, 32, 48, 64, 96)
TOKENS = 128


class WideExpertParallelism(BenchTest):
    """The same batch on more and more ranks."""

    section = "7.3"
    name = "wide-expert-parallelism"
    title = "Wide Expert Parallelism Scaling"
    objective = "How a dispatch scales when the expert-parallel group spans more and more hosts."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        subject = setup.subject
        if len(subject.servers) < 2:
            raise NotApplicableError("a group over several hosts takes 2 hosts; the fabric has one")
        possible = sorted({*(each for each in GROUPS if each < subject.ranks), min(subject.ranks, GROUPS[-1])})
        if len(possible) == 1:
            possible = [max(2, subject.ranks // 2), subject.ranks]
        groups = setup.choose(smoke=[possible[0], possible[-1]], standard=possible, full=possible)
        model = CANONICAL["M1"]
        dispatches = {ranks: _dispatches(setup, ranks) for ranks in groups}

        def trial(ranks: int) -> Trial:
            return setup.trial(f"{model.name}, EP={ranks}", [dispatches[ranks].groups(setup).item(setup)])

        fabric = [ranks for ranks in groups if _crosses(setup, dispatches[ranks])]
        runs = dict(zip(fabric, (yield [trial(ranks) for ranks in fabric]), strict=True))
        inter_ps = {ranks: dispatches[ranks].groups(setup).times(run).latency_ps for ranks, run in runs.items()}
        intra_ps = {ranks: scale_up_ps(setup, each.members, each.sizes) for ranks, each in dispatches.items()}
        # Both kinds of links carry their parts at the same time.
        total_ps = {ranks: np.maximum(inter_ps.get(ranks, np.zeros(1, np.int64)), intra_ps[ranks]) for ranks in groups}
        medians = {ranks: float(np.median(each)) for ranks, each in total_ps.items()}
        base, largest = groups[0], groups[-1]
        rows = []
        for ranks in groups:
            sent = int(crossing_bytes(setup, dispatches[ranks].members, dispatches[ranks].sizes).sum())
            fabric_ps = float(np.median(inter_ps[ranks])) if ranks in inter_ps else 0.0
            rows.append(
                [
                    ranks,
                    len({subject.server_of[rank] for rank in dispatches[ranks].members}),
                    round(medians[ranks] / PS_PER_US, 2),
                    round(float(np.percentile(total_ps[ranks], 99)) / PS_PER_US, 2),
                    round(intra_ps[ranks] / PS_PER_US, 2),
                    round(fabric_ps / PS_PER_US, 2),
                    round(sent * PS_PER_S / fabric_ps / 1e9, 2) if fabric_ps else 0.0,
                    round(medians[base] / medians[ranks] * ranks / base, 3),
                ]
            )
        condition = f"{model.name}, EP={largest}, {counted(TOKENS, 'token')} a rank"
        sent = int(crossing_bytes(setup, dispatches[largest].members, dispatches[largest].sizes).sum())
        return Measured(
            tables=[
                ReportTable(
                    f"Dispatch by EP group, {model.title}",
                    [
                        "EP group",
                        "hosts",
                        "P50 (us)",
                        "P99 (us)",
                        "intra-node (us)",
                        "inter-node (us)",
                        "inter-node GB/s",
                        "scaling efficiency",
                    ],
                    rows,
                    f"efficiency: latency of EP={base} over latency of EP=N, times N/{base}; both parts run at the "
                    "same time, so the longer one is the dispatch",
                )
            ],
            curves=[
                CurveFigure(
                    "Latency of a dispatch by EP group",
                    Axis("ranks of the group"),
                    Axis("median latency (us)", "us"),
                    [curve("dispatch", groups, [medians[ranks] / PS_PER_US for ranks in groups])],
                )
            ],
            kpis=[
                KpiValue("EP_alltoall_latency", float(np.percentile(total_ps[largest], 99)) / PS_PER_US, condition),
                KpiValue(
                    "EP_alltoall_bandwidth", sent * PS_PER_S / float(np.median(inter_ps[largest])) / 1e9, condition
                ),
            ],
            repeatability=[
                repeatability(f"latency, {condition}", "us", (total_ps[largest] / PS_PER_US).tolist()),
            ],
            scaled=[
                FORMULA_NOTE,
                f"hosts have {counted(subject.ranks_per_host, 'rank')}; the intra-node part is computed from the rate "
                "and the latency of scale-up links, not emulated",
                *(f"EP={each} takes more ranks than the fabric has" for each in GROUPS if each > subject.ranks),
            ],
        )


def _dispatches(setup: Setup, ranks: int) -> Dispatches:
    members, sizes = expert_ranks(setup, ranks), even_sizes(CANONICAL["M1"], TOKENS, ranks)
    return spaced(setup, members, sizes, dispatch_count(setup, members, sizes))


def _crosses(setup: Setup, dispatches: Dispatches) -> bool:
    return bool(crossing_bytes(setup, dispatches.members, dispatches.sizes).any())
