"""13.3 Long-Running Serving Stability."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft.bench import congestion
from weft.bench.inference.sustained_load import LOAD
from weft.bench.link_failures import HEADINGS, busiest_links, control_of, down, events_row, is_idle, ports_up_from, up
from weft.bench.measures import repeatability
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, bounded_rate
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.readable import counted, format_time
from weft.quantities.units import PS_PER_MS, PS_PER_US
from weft.results.report_parts import Axis, BarFigure, ReportTable
from weft.trials import Procedure


class ServingStability(BenchTest):
    """A long stream of requests, and a link that flaps in the middle."""

    section = "13.3"
    name = "serving-stability"
    title = "Long-Running Serving Stability"
    objective = "Whether a fabric under constant load is as before when a link has failed and come back."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        if not setup.subject.has_parallel_paths:
            raise NotApplicableError("no switch with hosts has another link to take the traffic of one that flaps")
        bound = yield from bounded_rate(setup)
        count = setup.choose(smoke=60, standard=400, full=100_000)
        down_ps = setup.choose(smoke=200, standard=1000, full=100_000) * PS_PER_US
        demand = replace(bound.demand, count=count).at_rate(LOAD * bound.demand.rate_per_s)
        item = bound.serving.item(setup, demand)
        (base_run,) = yield [setup.trial(f"{counted(count, 'request')}, all links up", [item])]
        base = Served(base_run)
        begins, ends = base.transfers
        # The transfer nearest to the middle: the link flaps while it carries a cache.
        middle = int(np.argsort(begins)[count // 2])
        at_ps = int(begins[middle] + ends[middle]) // 2
        prefill = [rank for host in bound.serving.prefill for rank in setup.subject.servers[host]]
        links = busiest_links(base_run, ports_up_from(setup, prefill))
        flap = [down(links[0], at_ps), up(links[0], at_ps + down_ps)]
        (run,) = yield [setup.trial(f"{counted(count, 'request')}, a link flaps", [item], events=flap)]
        served = Served(run)
        after = base.records["arrival_ps"] > at_ps + down_ps
        tails = {
            "before": (_tail_ms(base, ~after), _tail_ms(served, ~after)),
            "after": (_tail_ms(base, after), _tail_ms(served, after)),
        }
        flaps = [event for event in run.results.link_events if event.happened_ps is not None]
        return Measured(
            tables=[
                ReportTable(
                    "A link flap in the middle of the stream",
                    [
                        "link",
                        "down for (us)",
                        *HEADINGS,
                        "adjacency changes",
                        "failed queue pairs",
                        "buffer (%)",
                        *congestion.HEADINGS,
                    ],
                    [
                        [
                            links[0],
                            round(down_ps / PS_PER_US, 1),
                            *events_row(run),
                            len(flaps),
                            "none, or the run had failed",
                            round(congestion.buffer_percent(run, setup.subject), 3),
                            *congestion.congestion_row(run, setup.subject, served.result.sent_bytes),
                        ]
                    ],
                    "recovered: from the failure until all that was sent again was acknowledged",
                ),
                ReportTable(
                    "TTFT P99 (ms)",
                    ["requests", "all links up", "with the flap"],
                    [[f"{name} the link was back", *(round(each, 4) for each in pair)] for name, pair in tails.items()],
                ),
            ],
            bars=[
                BarFigure(
                    "TTFT P99 of requests after the flap",
                    Axis("time (ms)", "ms"),
                    ["all links up", "with the flap"],
                    {"TTFT P99": list(tails["after"])},
                )
            ],
            repeatability=[repeatability("TTFT P99 after the flap", "ms", list(tails["after"]))],
            scaled=[
                f"{bound.serving.described(demand)}; at {LOAD:.0%} of the rate within the objectives",
                f"{format_time(served.result.time_ps)} of emulated time in place of 24 hours; the link is down for "
                f"{format_time(down_ps)}, from {at_ps / PS_PER_MS:.3f} ms on",
                "a queue pair that fails ends the run, so none has; links have no errors to correct unless `faults` of "
                "the scenario says so",
                control_of(setup),
            ],
            anomalies=["the link that flaps is idle: KV caches keep to leaves"] if is_idle(base_run, links[:1]) else [],
        )


def _tail_ms(served: Served, chosen: NDArray[np.bool_]) -> float:
    values = served.first_token_ms[chosen]
    return float(np.percentile(values, 99)) if len(values) else 0.0
