"""8.4 Jain Fairness Index Measurement."""

from __future__ import annotations

from weft.bench.measures import repeatability
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.spreading import HEADINGS, require_paths, spread_of, transfers
from weft.bench.variants import LOAD_BALANCING, OWN, Variant
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import InvalidTrialError, Procedure, TrialRun


class JainIndex(BenchTest):
    """Jain's index of all ways of balancing load."""

    section = "8.4"
    name = "jain-index"
    title = "Jain Fairness Index Measurement"
    objective = "One number of the quality of each way of balancing load."
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_paths(setup)
        found: dict[str, list[Cell]] = {}
        indices: dict[str, float] = {}
        refused: list[str] = []
        for name, balancing in LOAD_BALANCING.items():
            if name == OWN:
                continue
            try:
                under = setup.under(Variant(setup.variant.transport, name))
                runs: list[TrialRun] = list((yield [transfers(under, balancing.title, 4)]))
            except (NotApplicableError, InvalidTrialError) as error:
                refused.append(f"{balancing.title}: not applicable: {error}")
                continue
            spread = spread_of(under, runs[0])
            found[balancing.title] = [balancing.title, *spread.row]
            indices[balancing.title] = spread.jfi
        return Measured(
            tables=[
                ReportTable(
                    "Load balancing, 4 queue pairs of each pair of hosts", ["strategy", *HEADINGS], [*found.values()]
                )
            ],
            bars=[BarFigure("Jain's index by strategy", Axis("JFI"), list(indices), {"JFI": list(indices.values())})],
            repeatability=[
                repeatability("JFI of each strategy, one seed", "JFI", [value]) for value in indices.values()
            ][:1],
            scaled=["JFI is that of the switch with the lowest"],
            anomalies=refused,
        )
