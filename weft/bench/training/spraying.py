"""8.3 Packet Spraying."""

from __future__ import annotations

from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.spreading import HEADINGS, mean_of, require_paths, spread_of, transfers
from weft.bench.variants import Variant
from weft.quantities.readable import counted
from weft.results.report_parts import ReportTable
from weft.trials import Procedure


class PacketSpraying(BenchTest):
    """Balance, reordering and retransmissions of packet spraying."""

    section = "8.3"
    name = "packet-spraying"
    title = "Packet Spraying"
    objective = "How evenly spraying loads links, and what its reordering costs."
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_paths(setup)
        spray = setup.under(Variant(setup.variant.transport, "spray"))
        counts = setup.choose(smoke=(1,), standard=(1, 4), full=(1, 4, 16))
        iterations = setup.choose(smoke=1, standard=5, full=20)
        runs = yield [
            transfers(spray, f"spraying, {counted(count, 'queue pair')}", count, number)
            for count in counts
            for number in range(iterations)
        ]
        spreads = [spread_of(spray, run) for run in runs]
        first = spreads[:iterations]
        return Measured(
            tables=[
                ReportTable(
                    "Packet spraying by queue pairs of each pair of hosts",
                    ["queue pairs", *HEADINGS],
                    [
                        [count, *mean_of(spreads[place * iterations : (place + 1) * iterations]).row]
                        for place, count in enumerate(counts)
                    ],
                    "switches have no reorder buffer: hosts place packets as they arrive",
                )
            ],
            kpis=[KpiValue("Spray Efficacy", mean_of(first).jfi, f"{counts[0]} queue pair")],
            repeatability=[
                repeatability("goodput, 1 queue pair", "% of line rate", [100 * each.goodput_share for each in first])
            ],
            scaled=["each seed sprays otherwise"],
        )
