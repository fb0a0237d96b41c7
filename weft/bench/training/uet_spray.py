"""6.3 Packet Spray Efficacy Under UET RUD."""

from __future__ import annotations

from weft.bench.configurations import CONFIGURATIONS, under_each
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.spreading import HEADINGS, Spread, mean_of, require_paths, spread_of, transfers
from weft.results.report_parts import Axis, BarFigure, ReportTable
from weft.trials import InvalidTrialError, Procedure

RUD_SPRAY = "UET RUD + Packet Spray"


class UetSpray(BenchTest):
    """Balance and goodput of spraying with UET and with RoCEv2."""

    section = "6.3"
    name = "uet-spray"
    title = "Packet Spray Efficacy Under UET RUD"
    objective = "What UET's packet spraying makes of the balance of links and of goodput, compared with RoCEv2."
    compares_transports = True
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_paths(setup)
        setups, refused = under_each(setup, CONFIGURATIONS)
        iterations = setup.choose(smoke=1, standard=5, full=20)
        found: dict[str, list[Spread]] = {}
        for name, under in setups.items():
            try:
                runs = yield [transfers(under, name, iteration=number) for number in range(iterations)]
            except InvalidTrialError as error:
                refused.append(f"{name}: not applicable: {error}")
                continue
            found[name] = [spread_of(under, run) for run in runs]
        sprayed = found.get(RUD_SPRAY, [])
        uplinks = max(len(group.ports) for group in setup.subject.uplinks)
        return Measured(
            tables=[
                ReportTable(
                    "Packet spray efficacy",
                    ["load balancing", *HEADINGS],
                    [[name, *mean_of(spreads).row] for name, spreads in found.items()],
                    "each host writes to the one half the fabric away; mean of all seeds",
                )
            ],
            bars=[
                BarFigure(
                    "Effective goodput",
                    Axis("% of line rate", "%"),
                    list(found),
                    {"goodput": [100 * mean_of(spreads).goodput_share for spreads in found.values()]},
                )
            ],
            kpis=[KpiValue("UET Spray Efficacy", mean_of(sprayed).jfi, RUD_SPRAY)] if sprayed else [],
            repeatability=[
                repeatability(f"goodput, {name}", "% of line rate", [100 * each.goodput_share for each in spreads])
                for name, spreads in found.items()
            ],
            scaled=[f"the fabric's own {uplinks} parallel links in place of 4, 8, 16 and 32 paths"],
            anomalies=refused,
        )
