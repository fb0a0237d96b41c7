"""6.1 UET Throughput by Transport Service."""

from __future__ import annotations

from itertools import product

from weft.bench.configurations import under_each
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.streams import Stream, Throughput, throughputs
from weft.bench.training.throughput import directions_of
from weft.bench.variants import Variant
from weft.quantities.readable import counted, format_size, format_time
from weft.quantities.units import MIB, PS_PER_US
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import InvalidTrialError, Procedure

SERVICES = {
    "ROD": Variant("uet-rod"),
    "RUD": Variant("uet-rud"),
    "RUDI": Variant("uet-rudi"),
    "RoCEv2 RC": Variant("rc"),
}
_LEFT_OUT = {
    "UUD": "datagrams of programs alone: it carries no flows",
    "RoCEv2 UC": "of programs alone: scenarios' flows travel over RC",
}


class UetThroughput(BenchTest):
    """Throughput of each delivery service of UET and of RoCEv2."""

    section = "6.1"
    name = "uet-throughput"
    title = "UET Throughput by Transport Service"
    objective = "The throughput that each of UET's services sustains on the fabric, compared with RoCEv2."
    compares_transports = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        variants = {
            name: Variant(variant.transport, setup.variant.load_balancing) for name, variant in SERVICES.items()
        }
        setups, refused = under_each(setup, variants)
        sizes = setup.choose(smoke=(MIB,), standard=(MIB, 4 * MIB), full=(MIB, 4 * MIB))
        counts = setup.choose(smoke=(1,), standard=(1, 4), full=(1, 4, 16, 32))
        directions = directions_of(setup)
        chosen = setup.choose(smoke=("unidirectional",), standard=("bidirectional",), full=tuple(directions))
        trial_ps = setup.choose(smoke=50, standard=200, full=2000) * PS_PER_US
        resolution = setup.choose(smoke=0.1, standard=0.05, full=0.005)
        keys = list(product(chosen, sizes, counts))
        streams = [Stream(directions[name], size, count) for name, size, count in keys]
        found: dict[str, dict[Key, Throughput]] = {}
        for name, under in setups.items():
            try:
                of_service = yield from throughputs(under, streams, trial_ps, resolution, label=f"{name}: ")
            except InvalidTrialError as error:
                refused.append(f"{name}: not applicable: {error}")
                continue
            found[name] = dict(zip(keys, of_service, strict=True))
        first_messages = {}
        for name in found:
            source, destination = setups[name].subject.remote_pair()
            flows = [
                flow
                for start_ps in (0, 20 * PS_PER_US)
                for flow in setups[name].transfer(source, destination, 4096, start_ps)[:1]
            ]
            (run,) = yield [setups[name].trial(f"{name}: the first message", [setups[name].flows(flows)])]
            first, second = run.flows["completion_ps"].tolist()
            first_messages[name] = (first - second) / PS_PER_US
        rud = found.get("RUD", {})
        best = max(rud, key=lambda key: rud[key].goodput_bps, default=None)
        return Measured(
            tables=[
                *(_table(setup, name, found, first_messages, sizes, counts) for name in chosen),
                ReportTable(
                    "Services that are not applicable",
                    ["service", "reason"],
                    [list(each) for each in _LEFT_OUT.items()],
                ),
            ],
            bars=[
                BarFigure(
                    f"Throughput of {format_size(sizes[0])} messages, {chosen[0]}",
                    Axis("Gbps"),
                    list(found),
                    {"throughput": [each[keys[0]].goodput_bps / 1e9 for each in found.values()]},
                )
            ],
            kpis=[
                KpiValue(
                    "UET Throughput (RUD)",
                    rud[best].goodput_bps / 1e9,
                    f"{format_size(best[1])} messages, {counted(best[2], 'queue pair')}, {best[0]}, all pairs together",
                )
            ]
            if best is not None
            else [],
            repeatability=[
                repeatability(f"throughput, {name}", "Gbps", [each[keys[0]].goodput_bps / 1e9])
                for name, each in found.items()
            ],
            scaled=[
                f"trials of {format_time(trial_ps)} in place of 60 s; each queue pair has one PDC",
                "RoCEv2's queue pairs are connected before the run, so their set-up takes no time",
                "the number of PDCs that a NIC sustains is in 6.7",
            ],
            anomalies=refused,
        )


Key = tuple[str, int, int]


def _table(
    setup: Setup,
    direction: str,
    found: dict[str, dict[Key, Throughput]],
    first_messages: dict[str, float],
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
) -> ReportTable:
    rows: list[list[Cell]] = []
    for size, count in product(sizes, counts):
        each = {name: of_service[direction, size, count] for name, of_service in found.items()}
        what = f"@ {format_size(size)}, {count} PDC/QP"
        rows.append([f"Throughput {what} (Gbps)", *(round(one.goodput_bps / 1e9, 1) for one in each.values())])
        rows.append(
            [
                f"Efficiency {what} (% line rate)",
                *(
                    round(100 * one.goodput_bps / (setup.subject.rank_rate_bps * len(one.stream.pairs)), 1)
                    for one in each.values()
                ),
            ]
        )
    rows.append(["PDC/QP setup time (us)", *(round(first_messages[name], 3) for name in found)])
    return ReportTable(
        f"UET throughput by transport service, {direction}",
        ["metric", *found],
        rows,
        "setup: by how much the first message takes longer than the second",
    )
