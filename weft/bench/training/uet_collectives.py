"""6.6 UET Collective Communication Performance."""

from __future__ import annotations

from weft.bench.collectives import TITLES, bandwidth_of, collective_trial, counts_of, require_two_hosts
from weft.bench.configurations import under_each
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.variants import Variant
from weft.quantities.readable import format_size
from weft.quantities.units import MIB
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import InvalidTrialError, Procedure

TRANSPORTS = {
    "UET RUD": Variant("uet-rud", "spray"),
    "UET ROD": Variant("uet-rod", "ecmp"),
    "RoCEv2 RC": Variant("rc", "ecmp"),
}


class UetCollectives(BenchTest):
    """Collectives over UET and over RoCEv2."""

    section = "6.6"
    name = "uet-collectives"
    title = "UET Collective Communication Performance"
    objective = "Bus bandwidth of collectives over UET RUD with spraying and over ROD, compared with RoCEv2."
    compares_transports = True
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_two_hosts(setup)
        setups, refused = under_each(setup, TRANSPORTS)
        size = setup.choose(smoke=MIB, standard=64 * MIB, full=1024 * MIB)
        counts = setup.choose(smoke=counts_of(setup)[-1:], standard=counts_of(setup)[-2:], full=counts_of(setup))
        repetitions = setup.choose(smoke=1, standard=4, full=100)
        keys = [(collective, count) for collective in TITLES for count in counts]
        found: dict[str, dict[tuple[str, int], float]] = {}
        for name, under in setups.items():
            try:
                runs = yield [collective_trial(under, *_sized(key, size), repetitions) for key in keys]
            except InvalidTrialError as error:
                refused.append(f"{name}: not applicable: {error}")
                continue
            found[name] = {key: bandwidth_of([run]).mean_gbps for key, run in zip(keys, runs, strict=True)}
        rud, rc = found.get("UET RUD", {}), found.get("RoCEv2 RC", {})
        largest = ("allreduce", counts[-1])
        return Measured(
            tables=[
                ReportTable(
                    "Collectives by transport: BusBW (Gbps)",
                    [
                        "collective",
                        "size",
                        "accelerators",
                        *(f"{name} BusBW" for name in found),
                        "delta UET/RoCEv2 (%)",
                    ],
                    [_row(key, size, found, rud, rc) for key in keys],
                    "UET RUD with packet spray, ROD and RoCEv2 RC with ECMP",
                )
            ],
            bars=[
                BarFigure(
                    f"BusBW on {counts[-1]} accelerators, {format_size(size)}",
                    Axis("Gbps"),
                    [f"{TITLES[collective]}, {name}" for collective in TITLES for name in found],
                    {"BusBW": [found[name][collective, counts[-1]] for collective in TITLES for name in found]},
                )
            ],
            kpis=[
                KpiValue(
                    "UET Collective BusBW", rud[largest], f"AllReduce, {format_size(size)}, {counts[-1]} accelerators"
                )
            ]
            if rud
            else [],
            repeatability=[
                repeatability(f"AllReduce BusBW, {name}", "Gbps", [each[largest]]) for name, each in found.items()
            ],
            scaled=[f"collectives of {format_size(size)}; {repetitions} iterations in place of 100"],
            anomalies=refused,
        )


def _sized(key: tuple[str, int], size: int) -> tuple[str, int, int]:
    return key[0], size, key[1]


def _row(
    key: tuple[str, int],
    size: int,
    found: dict[str, dict[tuple[str, int], float]],
    rud: dict[tuple[str, int], float],
    rc: dict[tuple[str, int], float],
) -> list[Cell]:
    delta: Cell = round(100 * (rud[key] / rc[key] - 1), 1) if rud and rc else "not applicable"
    return [TITLES[key[0]], format_size(size), key[1], *(round(each[key], 1) for each in found.values()), delta]
