"""9.4 Jain Fairness Index for Decode Worker Utilization."""

from __future__ import annotations

import math

import numpy as np

from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, Serving, demand_of, serving_of
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.fairness import jain_index
from weft.quantities.readable import counted
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import Procedure, Trial

WORKERS = (8, 16, 32, 64)
_LOAD = 0.8


class DecodeFairness(BenchTest):
    """Caches, computation and tokens of each decode worker."""

    section = "9.4"
    name = "decode-fairness"
    title = "Jain Fairness Index for Decode Worker Utilization"
    objective = "How evenly KV caches and work are spread over decode workers."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        available = len(setup.subject.servers)
        if available < 3:
            raise NotApplicableError(f"several decode workers take 3 hosts; the fabric has {available}")
        per_host = serving_of(setup).instances_per_host
        most = (available - 1) * per_host
        possible = sorted({*(count for count in WORKERS if count <= most), min(most, WORKERS[-1])})
        counts = setup.choose(smoke=possible[:1], standard=possible, full=possible)
        systems = {count: _system(setup, count) for count in counts}
        # As many requests to each worker, whatever their number.
        demands = {
            count: demand_of(setup, count=setup.choose(smoke=8, standard=20, full=1000) * count) for count in counts
        }

        def trial(count: int) -> Trial:
            serving, demand = systems[count], demands[count]
            rate = _LOAD * serving.capacity_per_s(demand)
            return setup.trial(counted(count, "decode worker"), [serving.item(setup, demand.at_rate(rate))])

        runs = yield [trial(count) for count in counts]
        found = {count: _per_worker(systems[count], Served(run)) for count, run in zip(counts, runs, strict=True)}
        largest = counts[-1]
        return Measured(
            tables=[
                ReportTable(
                    "Evenness over decode workers",
                    ["workers", *(text for name in found[largest] for text in (f"JFI, {name}", f"max/min, {name}"))],
                    [_row(count, each) for count, each in found.items()],
                )
            ],
            bars=[
                BarFigure(
                    f"KV caches received, {counted(largest, 'worker')}",
                    Axis("rate (GB/s)", "GB/s"),
                    [f"worker {number}" for number in range(largest)],
                    {_KV: [value / 1e9 for value in found[largest][_KV]]},
                )
            ],
            kpis=[
                KpiValue(
                    "JFI (Decode Worker)", jain_index(each[_KV]), f"KV cache bytes, {counted(count, 'decode worker')}"
                )
                for count, each in found.items()
            ],
            scaled=[
                systems[largest].described(demands[largest]),
                f"requests at {_LOAD:.0%} of the prefill capacity, to the decode worker with the fewest prompt tokens",
                *(
                    f"N_D = {count} takes more decode workers than the fabric has room for ({most})"
                    for count in WORKERS
                    if count > most
                ),
            ],
        )


_KV = "KV receive rate"


def _system(setup: Setup, workers: int) -> Serving:
    """Return a system with so many decode workers, and a quarter as many hosts for prefill if there are so many."""
    available, per_host = len(setup.subject.servers), serving_of(setup).instances_per_host
    hosts = math.ceil(workers / per_host)
    prefill = max(1, min(available - hosts, hosts // 3))
    return serving_of(setup, hosts + prefill, prefill)


def _per_worker(serving: Serving, served: Served) -> dict[str, list[float]]:
    columns = served.records
    workers = len(serving.decode) * serving.instances_per_host
    seconds = served.result.time_ps / 1e12
    received = np.bincount(columns["decode_instance"], columns["prompt_tokens"], workers) * serving.kv_bytes_per_token
    tokens = np.bincount(columns["decode_instance"], columns["output_tokens"], workers)
    return {
        _KV: [float(each) / seconds for each in received],
        "GPU utilization": list(served.result.decode_utilisation),
        "output TPS": [float(each) / seconds for each in tokens],
    }


def _row(count: int, metrics: dict[str, list[float]]) -> list[Cell]:
    cells: list[Cell] = [count]
    for values in metrics.values():
        cells += [
            round(jain_index(values), 4),
            round(max(values) / min(values), 3) if min(values) else "a worker has none",
        ]
    return cells
