"""11.2 Link Failure Convergence."""

from __future__ import annotations

from weft.bench.collective_sweeps import STRATEGIES
from weft.bench.collectives import require_two_hosts
from weft.bench.failures import (
    IDLE_CAUSE,
    SUPERSPINE,
    Impact,
    failing_trial,
    failures_of,
    impact_of,
    in_us,
    middle_ps,
    steady_trial,
)
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.spreading import require_paths
from weft.bench.variants import LOAD_BALANCING, OWN, Variant
from weft.quantities.readable import format_size, format_time
from weft.quantities.units import GIB, MIB, PS_PER_US
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import InvalidTrialError, Procedure


class LinkFailure(BenchTest):
    """A failure while an AllReduce fills the fabric, under each way of balancing load."""

    section = "11.2"
    name = "link-failure"
    title = "Link Failure Convergence"
    objective = "How long packets are lost when a link or a switch fails, and what it costs the running AllReduce."
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_two_hosts(setup)
        require_paths(setup)
        strategies = setup.choose(smoke=(OWN,), standard=(OWN, *STRATEGIES), full=(OWN, *STRATEGIES))
        most = setup.choose(smoke=1, standard=None, full=None)
        size = setup.choose(smoke=4 * MIB, standard=64 * MIB, full=GIB)
        found: dict[tuple[str, str], tuple[Impact, int]] = {}
        refused: list[str] = []
        idle: list[str] = []
        for name in strategies:
            title = LOAD_BALANCING[name].title
            try:
                under = setup.under(Variant(setup.variant.transport, name))
                (steady,) = yield [steady_trial(under, size, 1)]
                at_ps = middle_ps(steady)
                chosen = failures_of(setup.subject, steady)[:most]
                runs = yield [failing_trial(under, size, failure, at_ps) for failure in chosen]
            except (NotApplicableError, InvalidTrialError) as error:
                refused.append(f"{title}: not applicable: {error}")
                continue
            steady_ps = steady.results_of("collectives")[0].time_ps
            for failure, run in zip(chosen, runs, strict=True):
                if run.error:
                    refused.append(f"{title}, {failure.name}: the AllReduce failed: {run.error}")
                else:
                    if failure.is_idle:
                        idle.append(f"{title}, {failure.element} {IDLE_CAUSE}")
                    found[title, failure.name] = (impact_of(run), steady_ps)
        if not found:
            raise NotApplicableError("; ".join(refused))
        control = setup.subject.spec.options.control
        return Measured(
            tables=[
                ReportTable(
                    f"Failures during an AllReduce of {format_size(size)}, {setup.subject.ranks} accelerators",
                    [
                        "load balancing",
                        "failure",
                        "loss duration (us)",
                        "packets lost",
                        "new routes after (us)",
                        "last recovery after (us)",
                        "JCT overhead (us)",
                        "JCT overhead (%)",
                    ],
                    [_row(key, *each) for key, each in found.items()],
                    f"switches notice after {format_time(control.detection)}, the controller answers within "
                    f"{format_time(control.latency)} (control.detection, control.latency)",
                )
            ],
            bars=[
                BarFigure(
                    "JCT overhead of a failure",
                    Axis("% of the steady JCT", "%"),
                    [f"{failure}, {title}" for title, failure in found],
                    {"overhead": [100 * (each.time_ps / steady - 1) for each, steady in found.values()]},
                )
            ],
            kpis=[
                KpiValue("Failover Time", each.loss_ps / PS_PER_US, f"{failure}, {title}")
                for (title, failure), (each, _) in found.items()
            ],
            repeatability=[
                repeatability(
                    "loss duration of a leaf uplink", "us", [next(iter(found.values()))[0].loss_ps / PS_PER_US]
                )
            ],
            scaled=[
                f"AllReduce of {format_size(size)}, not of 1 GB on 128 accelerators; the failure comes in its middle",
                "the link or switch that fails is the one that carries most without the failure",
                *([] if any(failure.startswith(SUPERSPINE) for _, failure in found) else ["no superspine fails"]),
                *(
                    []
                    if control.detection
                    else ["the fabric's file has no control.detection: switches know of a failure at once"]
                ),
            ],
            anomalies=[*refused, *idle],
        )


def _row(key: tuple[str, str], impact: Impact, steady_ps: int) -> list[Cell]:
    return [
        *key,
        in_us(impact.loss_ps),
        impact.lost_packets,
        in_us(impact.redistribution_ps),
        in_us(impact.recovery_ps),
        in_us(impact.time_ps - steady_ps),
        round(100 * (impact.time_ps / steady_ps - 1), 3),
    ]
