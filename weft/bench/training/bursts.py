"""5.3 Back-to-Back Burst Absorption."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from weft.bench.congestion import pauses
from weft.bench.figures import curve
from weft.bench.incasts import left_out, possible_ratios
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.searches import Searched, largest_that_holds
from weft.bench.setup import Setup
from weft.bench.streams import is_clean
from weft.bench.unpaced import UNPACED
from weft.quantities.readable import format_size
from weft.quantities.units import KIB
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.traffic.patterns import Flow
from weft.trials import Procedure, Trial

RATIOS = (2, 4, 8, 16, 32)
_MOST_BUFFERS = 2.0
"""Longest burst of all senders together, in buffers of a switch."""
Key = tuple[int, int]


class BurstAbsorption(BenchTest):
    """Longest burst of several senders to one receiver without loss, and without a pause."""

    section = "5.3"
    name = "burst-absorption"
    title = "Back-to-Back Burst Absorption"
    objective = "The longest burst at line rate that the fabric absorbs without loss, by message size and incast ratio."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        sizes = setup.choose(smoke=(64 * KIB,), standard=(4 * KIB, 64 * KIB), full=(KIB, 4 * KIB, 64 * KIB, 256 * KIB))
        possible = possible_ratios(setup, RATIOS)
        ratios = setup.choose(smoke=possible[:2], standard=possible, full=possible)
        resolution = setup.choose(smoke=2.0, standard=1.2, full=1.02)
        iterations = setup.choose(smoke=1, standard=2, full=50)
        most_bytes = int(_MOST_BUFFERS * memory_bytes(setup))
        keys = list(product(sizes, ratios))
        ranges = {key: (float(key[0]), float(max(2 * key[0], most_bytes // key[1]))) for key in keys}

        def trial_of(iteration: int) -> Callable[[Key, float], Trial]:
            def trial(key: Key, value: float) -> Trial:
                size, ratio = key
                return setup.trial(
                    f"{ratio}:1, bursts of {format_size(value)}, messages of {format_size(size)}",
                    [setup.flows(_burst(setup, ratio, size, value))],
                    UNPACED,
                    iteration=iteration,
                )

            return trial

        lossless = yield from largest_that_holds(
            ranges, trial_of(0), lambda _, __, run: is_clean(run), resolution, geometric=True
        )
        unpaused = {}
        if setup.subject.spec.options.pfc.classes:
            unpaused = yield from largest_that_holds(
                ranges, trial_of(0), lambda _, __, run: is_clean(run) and not pauses(run), resolution, geometric=True
            )
        first = keys[-1]
        found = [lossless[first].value or 0.0]
        for number in range(1, iterations):
            again = yield from largest_that_holds(
                {first: ranges[first]}, trial_of(number), lambda _, __, run: is_clean(run), resolution, geometric=True
            )
            found.append(again[first].value or 0.0)
        return Measured(
            tables=[_table(setup, keys, ranges, lossless, unpaused)],
            curves=[_curves(sizes, ratios, lossless, "without loss"), *_paused_curves(sizes, ratios, unpaused)],
            kpis=[
                KpiValue(
                    "Burst Absorption", found[0], f"{first[1]}:1, messages of {format_size(first[0])}, each sender"
                )
            ],
            repeatability=[repeatability(f"burst of each sender, {first[1]}:1", "bytes", found)],
            scaled=[
                f"{iterations} repetitions in place of 50; the search ends at a ratio of {resolution:g}; bursts beyond "
                f"{format_size(most_bytes)} of all senders together are not tried",
                "senders start together and send at line rate: no congestion control holds them back",
                *left_out(setup, RATIOS, possible),
            ],
        )


def memory_bytes(setup: Setup) -> int:
    """Return the packet memory of the switch with most."""
    shared = setup.subject.spec.options.buffer.capacity
    if shared is not None:
        return shared
    return max(
        sum(port.link.memory_to_share_bytes for port in switch.ports) for switch in setup.subject.fabric.switches
    )


def _burst(setup: Setup, ratio: int, size: int, burst_bytes: float) -> list[Flow]:
    senders = setup.subject.senders_to(0, ratio) or []
    messages = max(1, round(burst_bytes / size))
    return [flow for sender in senders for _ in range(messages) for flow in setup.transfer(sender, 0, size)]


def _table(
    setup: Setup,
    keys: list[Key],
    ranges: dict[Key, tuple[float, float]],
    lossless: dict[Key, Searched[Key]],
    unpaused: dict[Key, Searched[Key]],
) -> ReportTable:
    mtu_bytes = setup.subject.spec.options.mtu_bytes
    columns = ["message", "ratio", "burst of each sender (B)", "frames", "all senders (B)"]
    columns += ["each sender without a pause (B)"] if unpaused else []
    rows: list[list[Cell]] = []
    for key in keys:
        size, ratio = key
        value = lossless[key].value
        burst = 0 if value is None else max(1, round(value / size)) * size
        at_least = "≥ " if value == ranges[key][1] else ""
        row: list[Cell] = [format_size(size), f"{ratio}:1"]
        frames = burst // size * -(-size // mtu_bytes)
        row += [f"{at_least}{number}" if at_least else number for number in (burst, frames, burst * ratio)]
        if unpaused:
            free = unpaused[key].value
            row.append(0 if free is None else max(1, round(free / size)) * size)
        rows.append(row)
    return ReportTable("Burst absorption without loss", columns, rows, "≥: the longest burst that was tried")


def _curves(sizes: tuple[int, ...], ratios: list[int], found: dict[Key, Searched[Key]], what: str) -> CurveFigure:
    return CurveFigure(
        f"Burst of each sender by incast ratio, {what}",
        Axis("senders"),
        Axis("burst (B)", "B", "log"),
        [
            curve(f"messages of {format_size(size)}", ratios, [found[size, ratio].value or 1.0 for ratio in ratios])
            for size in sizes
        ],
    )


def _paused_curves(sizes: tuple[int, ...], ratios: list[int], unpaused: dict[Key, Searched[Key]]) -> list[CurveFigure]:
    return [_curves(sizes, ratios, unpaused, "without a pause")] if unpaused else []
