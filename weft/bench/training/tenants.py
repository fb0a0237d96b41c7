"""10.3 Multi-Tenant JCT Interference."""

from __future__ import annotations

from weft.bench.collectives import collective_item, segments_for
from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.readable import format_size
from weft.quantities.units import MIB, PS_PER_MS
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure, Trial

OVERLAPS = (0.0, 0.25, 0.5, 0.75)


class MultiTenant(BenchTest):
    """AllReduces of two jobs that share leaf switches to a degree."""

    section = "10.3"
    name = "multi-tenant"
    title = "Multi-Tenant JCT Interference"
    objective = "By how much two jobs lengthen each other, by the share of leaf switches whose uplinks both use."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        placements: dict[float, tuple[list[int], list[int]]] = {}
        for overlap in OVERLAPS:
            if (found := placed(setup, overlap)) is not None:
                placements.setdefault(found[0], (found[1], found[2]))
        if not placements:
            raise NotApplicableError("two jobs that each cross switches take 2 switches with 2 hosts each at least")
        size = setup.choose(smoke=MIB, standard=32 * MIB, full=1024 * MIB)
        collective = setup.choose(
            smoke=("alltoall",), standard=("alltoall", "allreduce"), full=("alltoall", "allreduce")
        )
        chosen = (
            dict(list(placements.items())[:: max(1, len(placements) - 1)]) if setup.profile == "smoke" else placements
        )

        def trial(kind: str, overlap: float, jobs: tuple[list[int], ...], what: str) -> Trial:
            items = [collective_item(setup.subject, kind, size, ranks) for ranks in jobs]
            traffic = items if len(items) == 1 else [{"together": items}]
            return setup.trial(f"{kind}, overlap {overlap:.0%}, {what}", traffic, segments_for(setup, size))

        keys = [(kind, overlap) for kind in collective for overlap in chosen]
        runs = yield [
            each
            for kind, overlap in keys
            for each in (
                trial(kind, overlap, chosen[overlap][:1], "first alone"),
                trial(kind, overlap, chosen[overlap][1:], "second alone"),
                trial(kind, overlap, chosen[overlap], "both"),
            )
        ]
        rows: list[list[Cell]] = []
        factors: dict[tuple[str, float], float] = {}
        for place, key in enumerate(keys):
            first, second, both = runs[3 * place : 3 * place + 3]
            alone = [run.results_of("collectives")[0].time_ps for run in (first, second)]
            shared = [result.time_ps for result in both.results_of("collectives")]
            each = [together / by_itself for together, by_itself in zip(shared, alone, strict=True)]
            factors[key] = max(each)
            rows.append(
                [
                    key[0],
                    f"{key[1]:.0%}",
                    *(round(time / PS_PER_MS, 4) for time in (*alone, *shared)),
                    *(round(factor, 3) for factor in each),
                ]
            )
        columns = ["collective", "overlap", "first alone (ms)", "second alone (ms)", "first (ms)", "second (ms)"]
        columns += ["factor of the first", "of the second"]
        worst = max(factors, key=lambda key: factors[key])
        return Measured(
            tables=[ReportTable(f"JCT interference, {format_size(size)}", columns, rows)],
            curves=[
                CurveFigure(
                    "JCT interference factor by overlap",
                    Axis("leaf switches that both use (%)", "%"),
                    Axis("interference factor"),
                    [
                        curve(kind, [100 * overlap for overlap in chosen], [factors[kind, each] for each in chosen])
                        for kind in collective
                    ],
                )
            ],
            kpis=[KpiValue("Multi-Tenant Impact", factors[worst], f"{worst[0]}, overlap {worst[1]:.0%}")],
            repeatability=[repeatability("interference factor", "ratio", [factors[worst]])],
            scaled=[
                "overlap: the share of leaf switches with ranks of both jobs, as near to the draft's as can be: "
                + ", ".join(f"{each:.0%}" for each in placements),
            ],
        )


def placed(setup: Setup, overlap: float) -> tuple[float, list[int], list[int]] | None:
    """Return the share of leaf switches that two jobs both use, nearest to `overlap`, and their ranks; None if none.

    Each job takes half of the hosts of a switch that both use, and the same number of hosts at each of its own.
    """
    subject = setup.subject
    # Hosts at the same switches: of a rail-optimised fabric, at one for each rank.
    by_switches: dict[tuple[str, ...], list[tuple[int, ...]]] = {}
    for host in subject.servers:
        at = tuple(dict.fromkeys(subject.edges[rank] for rank in host))
        by_switches.setdefault(at, []).append(host)
    groups = {at: hosts for at, hosts in by_switches.items() if len(hosts) >= 2}
    switches, total = list(groups.values()), len(groups)
    shared = round(overlap * total)
    own = (total - shared) // 2
    if shared + own == 0 or sum(len(at) for at in list(groups)[: shared + own]) < 2:
        return None
    jobs: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] = ([], [])
    for hosts in switches[:shared]:
        half = len(hosts) // 2
        jobs[0].extend(hosts[:half])
        jobs[1].extend(hosts[half : 2 * half])
    for number, job in enumerate(jobs):
        for hosts in switches[shared + number * own : shared + (number + 1) * own]:
            job.extend(hosts[: len(hosts) // 2])
    ranks = tuple(sorted(rank for host in job for rank in host) for job in jobs)
    return shared / (shared + 2 * own), ranks[0], ranks[1]
