"""7.2 Routing Mode and Dispatch Mode Comparison."""

from __future__ import annotations

import numpy as np

from weft.bench import congestion
from weft.bench.expert_dispatch import (
    CANONICAL,
    FORMULA_NOTE,
    MODES_NOTE,
    ROUTING_MODES,
    Dispatches,
    Sizes,
    crossing_bytes,
    dispatch_count,
    even_sizes,
    expert_ranks,
    spaced,
)
from weft.bench.inference.dispatch_throughput import group_sizes
from weft.bench.measures import max_mean_ratio, repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.quantities.arrays import Integers
from weft.quantities.fairness import jain_index
from weft.quantities.readable import counted, format_size
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import Procedure, Trial, TrialRun

_NORMAL, _LOW_LATENCY = "normal", "low latency"
_LOW_LATENCY_TOKENS = 8
_PADDED = "padded to the same size for all pairs"
Key = tuple[str, str]


class RoutingModes(BenchTest):
    """Dispatches of prefill and of decode, by the way in which tokens choose experts."""

    section = "7.2"
    name = "routing-modes"
    title = "Routing Mode and Dispatch Mode Comparison"
    objective = "How the way in which tokens are routed to experts, and the kind of dispatch, change a dispatch."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        ranks = group_sizes(setup)[-1]
        model = CANONICAL[setup.choose(smoke="M2", standard="M4", full="M4")]
        tokens = setup.choose(smoke=32, standard=128, full=256)
        members = expert_ranks(setup, ranks)
        sizes: dict[Key, Sizes] = {
            (_NORMAL, mode): routed(model, tokens, ranks, setup.seed) for mode, routed in ROUTING_MODES.items()
        }
        sizes[_LOW_LATENCY, _PADDED] = even_sizes(model, _LOW_LATENCY_TOKENS, ranks)
        dispatches = {
            key: spaced(setup, members, each, dispatch_count(setup, members, each)) for key, each in sizes.items()
        }

        def trial(key: Key) -> Trial:
            return setup.trial(f"{key[0]} dispatch, {key[1]}", [dispatches[key].groups(setup).item(setup)])

        runs = dict(zip(sizes, (yield [trial(key) for key in sizes]), strict=True))
        latencies = {key: dispatches[key].groups(setup).times(run).latency_ps for key, run in runs.items()}
        tails = {key: float(np.percentile(each, 99)) / PS_PER_US for key, each in latencies.items()}
        return Measured(
            tables=[
                ReportTable(
                    f"{dispatch.capitalize()} dispatch, {mode}",
                    [
                        "P50 (us)",
                        "P99 (us)",
                        "GB/s",
                        "bytes, all pairs",
                        "largest over mean received",
                        "JFI of received",
                        *congestion.HEADINGS,
                    ],
                    [_row(setup, dispatches[dispatch, mode], latencies[dispatch, mode], run)],
                    f"{model.title}; EP={ranks}, "
                    f"{counted(tokens if dispatch == _NORMAL else _LOW_LATENCY_TOKENS, 'token')} a rank",
                )
                for (dispatch, mode), run in runs.items()
            ],
            bars=[
                BarFigure(
                    "Latency of a dispatch by mode of routing",
                    Axis("P99 (us)", "us"),
                    [f"{dispatch}: {mode}" for dispatch, mode in tails],
                    {"P99": list(tails.values())},
                )
            ],
            kpis=[
                KpiValue("EP_alltoall_latency", tail, f"P99, {dispatch} dispatch, {mode}")
                for (dispatch, mode), tail in tails.items()
            ],
            repeatability=[
                repeatability(f"latency, {dispatch}, {mode}", "us", (each / PS_PER_US).tolist())
                for (dispatch, mode), each in list(latencies.items())[:1]
            ],
            scaled=[
                f"{MODES_NOTE}; experts are drawn once, and a trial repeats that dispatch",
                f"low-latency dispatch: {FORMULA_NOTE}; padded to the same size for all",
                "RDMA WRITEs throughout; who begins them, CPU or GPU, makes no difference",
            ],
        )


def _row(setup: Setup, dispatches: Dispatches, latency_ps: Integers, run: TrialRun) -> list[Cell]:
    crossing = crossing_bytes(setup, dispatches.members, dispatches.sizes)
    received = crossing.sum(axis=0).tolist()
    median_ps = float(np.median(latency_ps))
    return [
        round(median_ps / PS_PER_US, 2),
        round(float(np.percentile(latency_ps, 99)) / PS_PER_US, 2),
        round(float(crossing.sum()) * PS_PER_S / median_ps / 1e9, 2),
        format_size(int(crossing.sum())),
        round(max_mean_ratio(received), 3),
        round(jain_index(received), 4),
        *congestion.congestion_row(run, setup.subject),
    ]
