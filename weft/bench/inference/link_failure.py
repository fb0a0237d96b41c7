"""12.3 Link Failure Convergence Impact on Serving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.bench import congestion
from weft.bench.link_failures import HEADINGS, busiest_links, control_of, down, events_row, is_idle, ports_up_from
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import BoundedRate, Served, bounded_rate
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.units import PS_PER_MS
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import Procedure, Trial, TrialRun

_LOAD = 0.8


class InferenceLinkFailure(BenchTest):
    """A link fails while it carries a KV cache."""

    section = "12.3"
    name = "link-failure"
    title = "Link Failure Convergence Impact on Serving"
    objective = "What requests notice of a link that fails, and how soon all is as before."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        if not setup.subject.has_parallel_paths:
            raise NotApplicableError("no switch with hosts has another link to take the traffic of one that fails")
        bound = yield from bounded_rate(setup)
        item = bound.serving.item(setup, bound.demand.at_rate(_LOAD * bound.demand.rate_per_s))
        (base_run,) = yield [setup.trial("all links up", [item])]
        base = Served(base_run)
        at_ps = _moment(base)
        scenarios, missing = _scenarios(setup, bound, base_run)
        iterations = setup.choose(smoke=1, standard=3, full=20)
        keys = [(name, number) for name in scenarios for number in range(iterations)]

        def trial(name: str, iteration: int) -> Trial:
            events = [down(link, at_ps) for link in scenarios[name]]
            return setup.trial(f"{name} at {at_ps / PS_PER_MS:.3f} ms", [item], iteration=iteration, events=events)

        runs = dict(zip(keys, (yield [trial(*key) for key in keys]), strict=True))
        # A path that hashes otherwise may not use the link: iterations have other hashes.
        first = {name: runs[name, 0] for name in scenarios}
        delays = {name: _delays_ms(base, Served(run)) for name, run in first.items()}
        return Measured(
            tables=[
                ReportTable(
                    "Failures while requests are served",
                    [
                        "failure",
                        "links",
                        *HEADINGS,
                        "TTFT P99 above baseline (ms)",
                        "largest delay of a request (ms)",
                        "TPS_output lost (%)",
                        "dropped (ppm)",
                    ],
                    [_row(name, scenarios[name], run, base, delays[name]) for name, run in first.items()],
                    "disruption: until the last data were lost on the link; recovered: until all that was sent again "
                    "was acknowledged",
                )
            ],
            bars=[
                BarFigure(
                    "Largest delay of a request",
                    Axis("time to the first token above baseline (ms)", "ms"),
                    list(first),
                    {"delay": [float(delays[name].max()) for name in first]},
                )
            ],
            kpis=[KpiValue("Packet_drop_rate", congestion.dropped_ppm(run), name) for name, run in first.items()],
            repeatability=[
                repeatability(
                    f"packets lost, {name}",
                    "packets",
                    [float(sum(runs[name, number].results.drops.values())) for number in range(iterations)],
                )
                for name in scenarios
            ],
            scaled=[
                f"{bound.serving.described(bound.demand)}; at {_LOAD:.0%} of the rate within the objectives",
                f"links fail for good in the middle of the longest transfer, {at_ps / PS_PER_MS:.3f} ms from the start",
                control_of(setup),
            ],
            anomalies=missing,
        )


def _moment(base: Served) -> int:
    """Return the middle of the longest transfer."""
    begins, ends = base.transfers
    longest = int(np.argmax(ends - begins))
    return int(begins[longest] + ends[longest]) // 2


def _scenarios(setup: Setup, bound: BoundedRate, base: TrialRun) -> tuple[Mapping[str, Sequence[str]], list[str]]:
    """Return the links that fail in each scenario, and the draft's that the fabric lacks."""
    subject, serving = setup.subject, bound.serving
    found: dict[str, Sequence[str]] = {}
    missing: list[str] = []
    prefill = [rank for host in serving.prefill for rank in subject.servers[host]]
    decode = [rank for host in serving.decode for rank in subject.servers[host]]
    from_prefill = busiest_links(base, ports_up_from(setup, prefill))
    found["leaf-spine link with KV caches"] = from_prefill[:1]
    if is_idle(base, from_prefill[:1]):
        missing.append("no leaf-spine link carries KV caches: they keep to leaves, and the links that fail are idle")
    tiers = {switch.name: switch.tier for switch in subject.fabric.switches}
    spine = [
        f"{link.a}<->{link.b}"
        for link in subject.fabric.training_links
        if min(tiers[link.a.node], tiers[link.b.node]) >= 1
    ]
    if spine:
        found["spine-spine link"] = spine[:1]
    else:
        missing.append("spine-spine link: the fabric has none")
    found["link of the decode worker's leaf"] = busiest_links(base, ports_up_from(setup, decode), towards=True)[:1]
    second = _another(setup, base, from_prefill[0])
    if second is not None:
        found["two leaf-spine links"] = [from_prefill[0], second]
    else:
        missing.append("two leaf-spine links: a leaf would have none left")
    return found, missing


def _another(setup: Setup, base: TrialRun, link: str) -> str | None:
    """Return a further link of the leaf of one, the busiest; None if it would be the last."""
    port = link.split("<->")[0]
    (group,) = (each.ports for each in setup.subject.uplinks if port in each.ports)
    return None if len(group) < 3 else busiest_links(base, [each for each in group if each != port])[0]


def _delays_ms(base: Served, failed: Served) -> NDArray[np.float64]:
    """Return by how much each request's first token comes later than without a failure."""
    return np.maximum(0.0, failed.first_token_ms - base.first_token_ms)


def _row(name: str, links: Sequence[str], run: TrialRun, base: Served, delays_ms: NDArray[np.float64]) -> list[Cell]:
    served = Served(run)
    return [
        name,
        ", ".join(links),
        *events_row(run),
        round(served.first_token_percentile_ms() - base.first_token_percentile_ms(), 4),
        round(float(delays_ms.max()), 4),
        round(100 * (1 - served.output_tokens_per_s / base.output_tokens_per_s), 3),
        round(congestion.dropped_ppm(run), 2),
    ]
