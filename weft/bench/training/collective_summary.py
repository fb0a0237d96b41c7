"""9.4 Collective Communication Library Bus Bandwidth Summary."""

from __future__ import annotations

from weft.bench.collectives import bandwidth_of, collective_trial, require_two_hosts
from weft.bench.configurations import CONFIGURATIONS, under_each
from weft.bench.measures import balance, repeatability
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.quantities.readable import format_size
from weft.quantities.units import MIB
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import InvalidTrialError, Procedure


class CollectiveSummary(BenchTest):
    """AlltoAll under the five configurations."""

    section = "9.4"
    name = "collective-summary"
    title = "Collective Communication Library Bus Bandwidth Summary"
    objective = "Balance, reordering and bandwidth of one collective under each transport and way of balancing load."
    compares_transports = True
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_two_hosts(setup)
        setups, refused = under_each(setup, CONFIGURATIONS)
        size = setup.choose(smoke=4 * MIB, standard=64 * MIB, full=1024 * MIB)
        repetitions = setup.choose(smoke=1, standard=5, full=20)
        ranks = setup.subject.ranks
        rows: list[list[Cell]] = []
        goodputs: dict[str, float] = {}
        spreads = []
        for name, under in setups.items():
            try:
                (run,) = yield [collective_trial(under, "alltoall", size, ranks, repetitions)]
            except InvalidTrialError as error:
                refused.append(f"{name}: not applicable: {error}")
                continue
            bandwidth = bandwidth_of([run])
            mtu_bytes = under.subject.spec.options.mtu_bytes
            packets = repetitions * ranks * size // mtu_bytes
            mmr, jfi = balance(run, under.subject)
            goodputs[name] = 100 * bandwidth.mean_gbps * 1e9 / under.subject.rank_rate_bps
            rows.append(
                [
                    name,
                    round(mmr, 3),
                    round(jfi, 4),
                    round(100 * run.results.out_of_sequence_packets / packets, 3),
                    round(100 * run.results.retransmissions / packets, 3),
                    round(goodputs[name], 1),
                    round(bandwidth.mean_gbps, 1),
                ]
            )
            spreads.append(
                repeatability(
                    f"AlltoAll BusBW, {name}",
                    "Gbps",
                    [bandwidth.mean_gbps * bandwidth.mean_s * 1e12 / t for t in bandwidth.times_ps],
                )
            )
        columns = [
            "load balancing",
            "MMR",
            "JFI",
            "OOO rate (%)",
            "Retx rate (%)",
            "Effective goodput (%)",
            "BusBW (Gbps)",
        ]
        return Measured(
            tables=[ReportTable(f"AlltoAll of {format_size(size)}, {ranks} accelerators", columns, rows)],
            bars=[
                BarFigure(
                    "AlltoAll BusBW by configuration",
                    Axis("% of the accelerator's rate", "%"),
                    list(goodputs),
                    {"BusBW": list(goodputs.values())},
                )
            ],
            repeatability=spreads,
            scaled=[f"AlltoAll of {format_size(size)}: the draft names no collective for this table"],
            anomalies=refused,
        )
