"""11.3 Zero-Impact Failover Measurement."""

from __future__ import annotations

import numpy as np

from weft.bench.collective_sweeps import STRATEGIES
from weft.bench.collectives import require_two_hosts
from weft.bench.failures import IDLE_CAUSE, failing_trial, failures_of, impact_of, in_us, middle_ps, steady_trial
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.spreading import require_paths
from weft.bench.variants import LOAD_BALANCING, OWN, Variant
from weft.quantities.readable import format_size
from weft.quantities.units import GIB, MIB, PS_PER_US
from weft.results.report_parts import Cell, ReportTable
from weft.trials import InvalidTrialError, Procedure


class ZeroImpact(BenchTest):
    """Whether an AllReduce with a failure takes no longer than others."""

    section = "11.3"
    name = "zero-impact"
    title = "Zero-Impact Failover Measurement"
    objective = "Whether the iteration with a failure is within the P99 of steady iterations."
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_two_hosts(setup)
        require_paths(setup)
        strategies = setup.choose(smoke=(OWN,), standard=(OWN, *STRATEGIES), full=(OWN, *STRATEGIES))
        size = setup.choose(smoke=4 * MIB, standard=16 * MIB, full=GIB)
        iterations = setup.choose(smoke=5, standard=20, full=100)
        rows: list[list[Cell]] = []
        kpis: list[KpiValue] = []
        refused: list[str] = []
        idle: list[str] = []
        spreads: dict[str, list[float]] = {}
        for name in strategies:
            title = LOAD_BALANCING[name].title
            try:
                under = setup.under(Variant(setup.variant.transport, name))
                (steady,) = yield [steady_trial(under, size, iterations)]
                failure = failures_of(setup.subject, steady)[0]
                (failed,) = yield [failing_trial(under, size, failure, middle_ps(steady))]
            except (NotApplicableError, InvalidTrialError) as error:
                refused.append(f"{title}: not applicable: {error}")
                continue
            if failed.error:
                refused.append(f"{title}: the AllReduce failed: {failed.error}")
                continue
            if failure.is_idle:
                idle.append(f"{title}, {failure.element} {IDLE_CAUSE}")
            times = steady.results_of("collectives")[0].times_ps
            limit_ps = float(np.percentile(times, 99))
            impact = impact_of(failed)
            is_zero = impact.time_ps <= limit_ps
            spreads[title] = [time / PS_PER_US for time in times]
            rows.append(
                [
                    title,
                    in_us(round(float(np.mean(times)))),
                    in_us(round(limit_ps)),
                    in_us(impact.time_ps),
                    in_us(impact.loss_ps),
                    "yes" if is_zero else "no",
                ]
            )
            kpis.append(KpiValue("Failover Time", impact.loss_ps / PS_PER_US, f"{failure.name}, {title}"))
        if not rows:
            raise NotApplicableError("; ".join(refused))
        columns = ["load balancing", "steady JCT, mean (us)", "steady JCT, P99 (us)", "JCT with the failure (us)"]
        columns += ["loss duration (us)", "zero-impact"]
        return Measured(
            tables=[ReportTable(f"A {failure.name} fails during an AllReduce of {format_size(size)}", columns, rows)],
            kpis=kpis,
            repeatability=[repeatability(f"steady JCT, {title}", "us", each) for title, each in spreads.items()],
            scaled=[f"{iterations} steady iterations; times are exact to the picosecond"],
            anomalies=[*refused, *idle],
        )
