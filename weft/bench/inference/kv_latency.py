"""5.2 KV Cache Transfer Latency."""

from __future__ import annotations

from itertools import product

import numpy as np

from weft.bench.background import background, payload_share, with_background
from weft.bench.figures import curve
from weft.bench.flow_groups import FlowGroups
from weft.bench.measures import PERCENTILES, percentiles_us, repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.quantities.arrays import Integers
from weft.quantities.readable import counted, format_size
from weft.quantities.units import KIB, MIB, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, CurveFigure, ReportTable
from weft.trials import Procedure, Trial

SIZES = (64 * KIB, MIB, 16 * MIB, 256 * MIB)
LOADS = (0.0, 0.25, 0.5, 0.75, 0.9)
_LEAST_MESSAGES = 4
Key = tuple[int, float]


class KvLatency(BenchTest):
    """Single writes of a block, with and without other traffic."""

    section = "5.2"
    name = "kv-latency"
    title = "KV Cache Transfer Latency"
    objective = "The completion time of one KV cache block, by its size and the fabric's load."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        sizes = setup.choose(smoke=(64 * KIB, MIB), standard=SIZES[:3], full=SIZES)
        loads = setup.choose(smoke=(0.0, 0.9), standard=LOADS, full=LOADS)
        messages = setup.choose(smoke=20, standard=200, full=10_000)
        most_bytes = setup.choose(smoke=160 * MIB, standard=1024 * MIB, full=1 << 42)
        pair = setup.subject.remote_pair()
        keys = list(product(sizes, loads))
        groups = {size: _blocks(setup, pair, size, messages, most_bytes) for size in sizes}

        iterations = setup.choose(smoke=2, standard=3, full=20)
        # Idle links are the same whichever of them a block takes.
        numbered = [(key, number) for key in keys for number in range(iterations if key[1] else 1)]

        def trial(size: int, load: float, iteration: int) -> Trial:
            found = groups[size]
            until_ps = max(flow.start_ps for flow in found.flows) + _interval_ps(setup, size)
            traffic = with_background(setup, found.item(setup), background(setup, load, until_ps, pair))
            return setup.trial(f"{format_size(size)} blocks, background {load:.0%}", traffic, iteration=iteration)

        runs = dict(zip(numbered, (yield [trial(*key, number) for key, number in numbered]), strict=True))
        found = {
            key: np.concatenate(
                [groups[key[0]].times(run).latency_ps for (each, _), run in runs.items() if each == key]
            )
            for key in keys
        }
        shown = sizes[min(1, len(sizes) - 1)]
        idle, busiest = (shown, loads[0]), (shown, loads[-1])
        return Measured(
            tables=[
                ReportTable(
                    "Latency of one KV cache block (us)",
                    ["block", "background (%)", "blocks", *(f"P{each:g}" for each in PERCENTILES), "P99 - P50"],
                    [_row(key, found[key]) for key in keys],
                    "from posting the write to its last acknowledgement; background is that of the other ranks' NICs, "
                    "headers included",
                )
            ],
            curves=[
                CurveFigure(
                    f"Latency of blocks of {format_size(shown)}",
                    Axis("latency (us)", "us"),
                    Axis("share of the blocks", ""),
                    [
                        curve(
                            f"background {load:.0%}",
                            np.sort(found[shown, load]) / PS_PER_US,
                            np.arange(1, len(found[shown, load]) + 1) / len(found[shown, load]),
                        )
                        for load in loads
                    ],
                )
            ],
            kpis=[
                *(
                    KpiValue(
                        "KV_xfer_latency",
                        percentiles_us(found[key])[2],
                        f"P99, {format_size(key[0])}, background {key[1]:.0%}",
                    )
                    for key in (idle, busiest)
                ),
                *(
                    KpiValue(
                        "Fabric_FCT",
                        percentiles_us(found[key])[0],
                        f"median, {format_size(key[0])}, background {key[1]:.0%}",
                    )
                    for key in (idle, busiest)
                ),
            ],
            repeatability=[
                repeatability(f"latency, {format_size(shown)}, idle", "us", (found[idle] / PS_PER_US).tolist())
            ],
            scaled=[
                f"up to {counted(messages, 'block')} of a size, one at a time, in place of 20 trials of 120 s; fewer "
                "of large ones, whose highest percentiles are the largest value",
                f"{counted(iterations, 'trial')} of each load, in which blocks take other links",
                "the measured NICs send nothing else, so the load is that of links between switches",
            ],
        )


def _interval_ps(setup: Setup, size: int) -> int:
    """Return a time in which a block has arrived, twice over."""
    return round(2 * size * 8 * PS_PER_S / (setup.subject.rank_rate_bps * payload_share(setup))) + 5 * PS_PER_US


def _blocks(setup: Setup, pair: tuple[int, int], size: int, messages: int, most_bytes: int) -> FlowGroups:
    interval_ps = _interval_ps(setup, size)
    # Background of all other ranks runs meanwhile, and is most of what a trial has to carry.
    carried = setup.subject.ranks * setup.subject.rank_rate_bps * interval_ps // (8 * PS_PER_S)
    found = FlowGroups()
    for number in range(max(_LEAST_MESSAGES, min(messages, most_bytes // carried))):
        found.add(setup.transfer(*pair, size, number * interval_ps))
    return found


def _row(key: Key, times_ps: Integers) -> list[str | float]:
    values = percentiles_us(times_ps)
    return [
        format_size(key[0]),
        round(100 * key[1]),
        len(times_ps),
        *(round(value, 2) for value in values),
        round(values[2] - values[0], 2),
    ]
