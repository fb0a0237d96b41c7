"""7.4 Expert Parallelism and KV Cache Transfer Contention."""

from __future__ import annotations

import numpy as np

from weft.bench import congestion
from weft.bench.background import background
from weft.bench.expert_dispatch import (
    CANONICAL,
    FORMULA_NOTE,
    Dispatches,
    dispatch_count,
    even_sizes,
    expert_ranks,
    spaced,
)
from weft.bench.flow_groups import FlowGroups
from weft.bench.inference.dispatch_throughput import group_sizes
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.quantities.arrays import Integers
from weft.quantities.readable import counted, format_size
from weft.quantities.units import MIB, PS_PER_US
from weft.results.report_parts import Axis, BarFigure, ReportTable
from weft.trials import Procedure

_ALONE = "isolated"


class DispatchContention(BenchTest):
    """Dispatches and KV caches, each alone and both together."""

    section = "7.4"
    name = "dispatch-contention"
    title = "Expert Parallelism and KV Cache Transfer Contention"
    objective = "How much expert dispatches and KV cache transfers slow each other down on the same links."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        ranks = group_sizes(setup)[-1]
        model, tokens = CANONICAL["M1"], setup.choose(smoke=16, standard=64, full=128)
        loads = setup.choose(smoke=(0.5,), standard=(0.5, 0.75), full=(0.5, 0.75))
        block = setup.choose(smoke=MIB // 4, standard=MIB, full=16 * MIB)
        members, sizes = expert_ranks(setup, ranks), even_sizes(model, tokens, ranks)
        count = min(setup.choose(smoke=5, standard=20, full=1000), dispatch_count(setup, members, sizes))
        dispatches = spaced(setup, members, sizes, count)
        experts = dispatches.groups(setup)
        caches = {load: _caches(setup, dispatches, load, block) for load in loads}
        traffic = {(_ALONE, 0.0): [experts.item(setup)]}
        for load in loads:
            traffic["KV caches alone", load] = [caches[load].item(setup)]
            traffic["together", load] = [{"together": [experts.item(setup), caches[load].item(setup)]}]
        runs = dict(
            zip(
                traffic,
                (yield [setup.trial(f"{name}, KV load {load:.0%}", each) for (name, load), each in traffic.items()]),
                strict=True,
            )
        )
        alone_us = _tail_us(experts.times(runs[_ALONE, 0.0]).latency_ps)
        rows, penalties, kpis = [], {}, [KpiValue("EP_alltoall_latency", alone_us, "P99, isolated")]
        for load in loads:
            kv_alone_us = _tail_us(caches[load].times(runs["KV caches alone", load]).latency_ps)
            contended = runs["together", load]
            expert_us = _tail_us(experts.times(contended, 0).latency_ps)
            kv_us = _tail_us(caches[load].times(contended, 1).latency_ps)
            penalties[load] = (expert_us / alone_us, kv_us / kv_alone_us)
            kpis.append(KpiValue("EP_alltoall_latency", expert_us, f"P99, with KV caches at {load:.0%}"))
            rows.append(
                [
                    f"{load:.0%}",
                    round(kv_alone_us, 2),
                    round(kv_us, 2),
                    round(penalties[load][1], 3),
                    round(alone_us, 2),
                    round(expert_us, 2),
                    round(penalties[load][0], 3),
                    *congestion.congestion_row(contended, setup.subject),
                ]
            )
        return Measured(
            tables=[
                ReportTable(
                    "Contention of KV caches and expert dispatches",
                    [
                        "KV load",
                        "KV P99, isolated (us)",
                        "KV P99, contended (us)",
                        "KV penalty",
                        "EP P99, isolated (us)",
                        "EP P99, contended (us)",
                        "EP penalty",
                        *congestion.HEADINGS,
                    ],
                    rows,
                    "penalty: contended over isolated P99; marks and pauses are those of the contended trial",
                )
            ],
            bars=[
                BarFigure(
                    f"Penalty at a KV load of {load:.0%}",
                    Axis("contended over isolated P99"),
                    ["expert dispatch", "KV cache"],
                    {"penalty": list(penalties[load])},
                )
                for load in loads
            ],
            kpis=kpis,
            scaled=[
                FORMULA_NOTE,
                f"{model.title}, EP={ranks}, {counted(tokens, 'token')} a rank; "
                f"{counted(count, 'dispatch', 'dispatches')}, with KV blocks of {format_size(block)} between all pairs "
                "of ranks, at a share of the NICs' rate",
            ],
        )


def _caches(setup: Setup, dispatches: Dispatches, load: float, block: int) -> FlowGroups:
    found = FlowGroups()
    nics = 1 if setup.subject.spans_planes else setup.subject.nics
    flows = background(setup, load, dispatches.end_ps, message_bytes=block)
    for first in range(0, len(flows), nics):
        found.add(flows[first : first + nics])
    return found


def _tail_us(latency_ps: Integers) -> float:
    return float(np.percentile(latency_ps, 99)) / PS_PER_US
