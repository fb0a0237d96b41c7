"""5.1 Baseline Throughput."""

from __future__ import annotations

from itertools import product

from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.streams import Stream, Throughput, throughputs
from weft.quantities.readable import counted, format_size, format_time
from weft.quantities.units import KIB, MIB, PS_PER_US
from weft.results.report_parts import Axis, CurveFigure, ReportTable
from weft.trials import Procedure

SIZES = (64, 256, KIB, 4 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
QUEUE_PAIRS = (1, 4, 16, 32)


class BaselineThroughput(BenchTest):
    """RDMA WRITE throughput by message size and queue pairs."""

    section = "5.1"
    name = "baseline-throughput"
    title = "Baseline Throughput"
    objective = "The largest RDMA WRITE throughput that the fabric sustains without loss, by message size."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        sizes = setup.choose(smoke=(64 * KIB, MIB), standard=(KIB, 64 * KIB, MIB), full=SIZES)
        counts = setup.choose(smoke=(1,), standard=(1, 4, 16), full=QUEUE_PAIRS)
        trial_ps = setup.choose(smoke=50, standard=200, full=2000) * PS_PER_US
        resolution = setup.choose(smoke=0.05, standard=0.03, full=0.005)
        both = directions_of(setup)
        names = setup.choose(smoke=("unidirectional",), standard=tuple(both), full=tuple(both))
        directions = {name: both[name] for name in names}
        streams = {
            (name, size, count): Stream(pairs, size, count)
            for (name, pairs), size, count in product(directions.items(), sizes, counts)
        }
        found = yield from throughputs(setup, list(streams.values()), trial_ps, resolution)
        by_key = dict(zip(streams, found, strict=True))
        best_key = max(by_key, key=lambda key: by_key[key].goodput_bps)
        best = by_key[best_key]
        iterations = setup.choose(smoke=2, standard=4, full=20)
        repeated = []
        for number in range(1, iterations):
            repeated += yield from throughputs(setup, [best.stream], trial_ps, resolution, iteration=number)
        goodputs = [best.goodput_bps, *(each.goodput_bps for each in repeated)]
        condition = f"{format_size(best_key[1])} messages, {counted(best_key[2], 'queue pair')} a pair, {best_key[0]}"
        return Measured(
            tables=[_table(setup, name, by_key, sizes, counts) for name in directions],
            curves=[_curves(name, by_key, sizes, counts) for name in directions],
            kpis=[KpiValue("Throughput Rate", best.goodput_bps / 1e12, condition)],
            repeatability=[repeatability(f"throughput of {condition}", "Tbps", [each / 1e12 for each in goodputs])],
            scaled=[
                f"trials of {format_time(trial_ps)} of emulated time in place of 60 s, shorter for small messages; "
                f"the search ends at {resolution:.1%} of the line rate",
            ],
            anomalies=[
                f"{format_size(size)} × {count} queue pairs, {name}: nothing is sustained"
                for (name, size, count), each in by_key.items()
                if not each.load
            ],
        )


def directions_of(setup: Setup) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return the pairs of ranks that send, one way and both ways. NotApplicableError: there is one rank only."""
    pairs = setup.subject.pairs
    if not pairs:
        raise NotApplicableError("the fabric has one endpoint")
    half = tuple(pair for pair in pairs if pair[0] < pair[1])
    return {"unidirectional": half, "bidirectional": pairs}


Key = tuple[str, int, int]


def _table(
    setup: Setup,
    name: str,
    found: dict[Key, Throughput],
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
) -> ReportTable:
    rows: list[list[str | float]] = []
    for size in sizes:
        row: list[str | float] = [format_size(size)]
        for count in counts:
            each = found[name, size, count]
            line_bps = setup.subject.rank_rate_bps * len(each.stream.pairs)
            row += [round(each.goodput_bps / 1e12, 4), round(100 * each.goodput_bps / line_bps, 1)]
        rows.append(row)
    columns = ["message", *(text for count in counts for text in (f"Tbps, {count} QP", f"% of line rate, {count} QP"))]
    return ReportTable(
        f"Throughput, {name}",
        columns,
        rows,
        "payload of all pairs together; the share of the line rate is both the ports' utilisation by payload and the "
        "efficiency",
    )


def _curves(name: str, found: dict[Key, Throughput], sizes: tuple[int, ...], counts: tuple[int, ...]) -> CurveFigure:
    return CurveFigure(
        f"Throughput by message size, {name}",
        Axis("message (B)", "B", "log"),
        Axis("throughput (Tbps)", "Tbps"),
        [
            curve(counted(count, "queue pair"), sizes, [found[name, size, count].goodput_bps / 1e12 for size in sizes])
            for count in counts
        ],
    )
