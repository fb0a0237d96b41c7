"""5.1 Point-to-Point KV Cache Transfer Throughput."""

from __future__ import annotations

from itertools import product

from weft.bench.background import payload_share
from weft.bench.figures import curve
from weft.bench.flow_groups import FlowGroups
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.quantities.limits import MAX_FLOW_BYTES
from weft.quantities.readable import counted, format_size
from weft.quantities.units import KIB, MIB, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, CurveFigure, ReportTable
from weft.trials import Procedure, Trial

SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB)
QUEUE_PAIRS = (1, 4, 8, 16, 32, 64, 128)
_LEAST_MESSAGES = 2
Key = tuple[int, int]


class KvThroughput(BenchTest):
    """Writes from one rank to another, as fast as their NICs can."""

    section = "5.1"
    name = "kv-throughput"
    title = "Point-to-Point KV Cache Transfer Throughput"
    objective = "The KV cache throughput between a prefill and a decode NIC, by block size and queue pairs."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        sizes = setup.choose(smoke=(64 * KIB, 16 * MIB), standard=SIZES[:6], full=SIZES)
        counts = setup.choose(smoke=(1, 8), standard=(1, 8, 32, 128), full=QUEUE_PAIRS)
        duration_ps = setup.choose(smoke=50, standard=500, full=60_000_000) * PS_PER_US
        most_bytes = setup.choose(smoke=64 * MIB, standard=256 * MIB, full=1 << 42)
        iterations = setup.choose(smoke=2, standard=5, full=20)
        keys = [
            (size, count)
            for size, count in product(sizes, counts)
            if size * count <= min(MAX_FLOW_BYTES, most_bytes // _LEAST_MESSAGES)
        ]
        source, destination = setup.subject.remote_pair()
        line_bytes_per_s = setup.subject.rank_rate_bps / 8

        def groups(key: Key) -> FlowGroups:
            size, count = key
            wanted_bytes = min(most_bytes, round(line_bytes_per_s * duration_ps / PS_PER_S))
            found = FlowGroups()
            for _ in range(max(_LEAST_MESSAGES, wanted_bytes // (size * count))):
                found.add(setup.transfer(source, destination, size * count, 0, count))
            return found

        def trial(key: Key, iteration: int = 0) -> Trial:
            label = f"{format_size(key[0])} blocks, {counted(key[1], 'queue pair')}"
            return setup.trial(label, [groups(key).item(setup)], iteration=iteration)

        runs = yield [trial(key) for key in keys]
        rates = {key: groups(key).times(run).bytes_per_s / 1e9 for key, run in zip(keys, runs, strict=True)}
        best = max(rates, key=lambda key: rates[key])
        again = yield [trial(best, number) for number in range(1, iterations)]
        repeated = [rates[best], *(groups(best).times(run).bytes_per_s / 1e9 for run in again)]
        line = line_bytes_per_s / 1e9
        condition = f"{format_size(best[0])} blocks, {counted(best[1], 'queue pair')}"
        left_out = [key for key in product(sizes, counts) if key not in keys]
        return Measured(
            tables=[
                ReportTable(
                    "KV cache throughput of one pair",
                    ["block", *(f"GB/s, {count} QP" for count in counts), "% of line rate, largest"],
                    [
                        [
                            format_size(size),
                            *(round(rates[size, count], 3) if (size, count) in rates else "" for count in counts),
                            round(100 * max(rates.get((size, count), 0.0) for count in counts) / line, 1),
                        ]
                        for size in sizes
                        if any((size, count) in rates for count in counts)
                    ],
                    f"payload from rank {source} to rank {destination}; of a full packet {payload_share(setup):.1%} at "
                    "most are payload",
                )
            ],
            curves=[
                CurveFigure(
                    "KV cache throughput by block size",
                    Axis("block (B)", "B", "log"),
                    Axis("throughput (GB/s)", "GB/s"),
                    [
                        *(
                            curve(
                                counted(count, "queue pair"),
                                [size for size in sizes if (size, count) in rates],
                                [rates[size, count] for size in sizes if (size, count) in rates],
                            )
                            for count in counts
                        ),
                        curve("line rate", [sizes[0], sizes[-1]], [line, line]),
                    ],
                )
            ],
            kpis=[KpiValue("KV_xfer_bandwidth", rates[best], condition)],
            repeatability=[repeatability(f"throughput, {condition}", "GB/s", repeated)],
            scaled=[
                f"each trial sends blocks back to back for {duration_ps / PS_PER_US:g} us at line rate, or "
                f"{counted(_LEAST_MESSAGES, 'block')} of each queue pair, in place of 60 s; {iterations} iterations of "
                "the best configuration",
                "processors, GPU memory and NIC offloads take no time unless `nic` of the scenario says so",
                *(
                    [f"{len(left_out)} combinations of more than {format_size(most_bytes)} left out"]
                    if left_out
                    else []
                ),
            ],
        )
