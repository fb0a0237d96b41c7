"""6.4 Prefill Queue Depth Impact on Transfer Latency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.bench import congestion
from weft.bench.figures import curve
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, Serving, demand_of, serving_of
from weft.bench.setup import Setup
from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure, Trial, TrialRun

RATIOS = (1.0, 1.25, 1.5, 1.75, 2.0)


@dataclass(frozen=True, eq=False)
class Bursts:
    """Bursts of transfers: in each, one begins before the others have ended.

    Attributes:
        begin_ps: of each burst.
        end_ps: of each burst.
        size_bytes: of each burst's caches.
    """

    begin_ps: Integers
    end_ps: Integers
    size_bytes: Integers

    @property
    def gaps_ps(self) -> Integers:
        """Times from one burst's end to the next one's beginning."""
        return self.begin_ps[1:] - self.end_ps[:-1]


def bursts_of(begin_ps: Integers, end_ps: Integers, size_bytes: Integers) -> Bursts:
    """Return the bursts of transfers, given each one's beginning, end and size."""
    order = np.argsort(begin_ps, kind="stable")
    begins, ends, sizes = begin_ps[order], end_ps[order], size_bytes[order]
    last_end = np.maximum.accumulate(ends)
    first = np.flatnonzero(np.concatenate(([True], begins[1:] >= last_end[:-1])))
    return Bursts(begins[first], np.maximum.reduceat(ends, first), np.add.reduceat(sizes, first))


def peak_bytes_per_s(begin_ps: Integers, end_ps: Integers, size_bytes: Integers) -> float:
    """Return the largest sum of the mean rates of transfers that are under way at once."""
    rates = size_bytes * PS_PER_S / np.maximum(1, end_ps - begin_ps)
    moments, changes = np.concatenate((begin_ps, end_ps)), np.concatenate((rates, -rates))
    kinds = np.repeat((1, 0), len(begin_ps))
    return float(np.cumsum(changes[np.lexsort((kinds, moments))]).max())


class PrefillQueueDepth(BenchTest):
    """More requests than prefill instances can compute."""

    section = "6.4"
    name = "prefill-queue-depth"
    title = "Prefill Queue Depth Impact on Transfer Latency"
    objective = "How bursty KV cache transfers are when requests queue for prefill."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        available = len(setup.subject.servers)
        total = min(available, setup.choose(smoke=4, standard=16, full=available))
        # Several prefill hosts, so that caches may meet.
        serving, demand = serving_of(setup, total, max(1, total // 2)), demand_of(setup)
        ratios = setup.choose(smoke=(1.0, 2.0), standard=RATIOS, full=RATIOS)
        capacity = serving.capacity_per_s(demand)

        def trial(ratio: float) -> Trial:
            return setup.trial(
                f"prefill oversubscribed {ratio:g}x", [serving.item(setup, demand.at_rate(ratio * capacity))]
            )

        runs = dict(zip(ratios, (yield [trial(ratio) for ratio in ratios]), strict=True))
        found = {ratio: Served(run) for ratio, run in runs.items()}
        bursts = {ratio: bursts_of(*served.transfers, _sizes(serving, served)) for ratio, served in found.items()}
        last = ratios[-1]
        return Measured(
            tables=[
                ReportTable(
                    "Bursts of KV cache transfers",
                    [
                        "oversubscription",
                        "bursts",
                        "size P50 (MB)",
                        "size P99 (MB)",
                        "duration P50 (us)",
                        "gap P50 (us)",
                        "peak GB/s",
                        "average GB/s",
                        "transfer P99 (us)",
                        "queue at prefill P99 (ms)",
                        *congestion.HEADINGS,
                    ],
                    [_row(setup, serving, ratio, found[ratio], bursts[ratio], runs[ratio]) for ratio in ratios],
                    "a burst: transfers of which each begins before those before it have ended; peak: the sum of the "
                    "mean rates of transfers under way at once",
                )
            ],
            curves=[
                CurveFigure(
                    "Sizes of bursts",
                    Axis("bytes of a burst (MB)", "MB"),
                    Axis("share of the bursts"),
                    [
                        curve(
                            f"{ratio:g}x",
                            np.sort(each.size_bytes) / 1e6,
                            np.arange(1, len(each.size_bytes) + 1) / len(each.size_bytes),
                        )
                        for ratio, each in bursts.items()
                    ],
                )
            ],
            kpis=[
                KpiValue(
                    "KV_xfer_latency", found[last].transfer_percentile_us(), f"P99, prefill oversubscribed {last:g}x"
                )
            ],
            scaled=[
                serving.described(demand),
                "prefill instances compute one prompt at a time, so queued prompts do not leave them in larger bursts",
            ],
        )


def _sizes(serving: Serving, served: Served) -> Integers:
    return np.asarray(served.records["prompt_tokens"] * serving.kv_bytes_per_token, np.int64)


def _row(setup: Setup, serving: Serving, ratio: float, served: Served, bursts: Bursts, run: TrialRun) -> list[Cell]:
    sizes, gaps = bursts.size_bytes / 1e6, bursts.gaps_ps / PS_PER_US
    return [
        f"{ratio:g}x",
        len(sizes),
        round(float(np.median(sizes)), 3),
        round(float(np.percentile(sizes, 99)), 3),
        round(float(np.median(bursts.end_ps - bursts.begin_ps)) / PS_PER_US, 2),
        round(float(np.median(gaps)), 2) if len(gaps) else "",
        round(peak_bytes_per_s(*served.transfers, _sizes(serving, served)) / 1e9, 3),
        round(served.kv_bytes_per_s / 1e9, 3),
        round(served.transfer_percentile_us(), 2),
        round(float(np.percentile(served.parts_ms["queue at prefill"], 99)), 3),
        *_congestion(setup, served, run),
    ]


def _congestion(setup: Setup, served: Served, run: TrialRun) -> list[Cell]:
    return congestion.congestion_row(run, setup.subject, data_bytes=served.result.sent_bytes)
