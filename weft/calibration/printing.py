"""A calibration on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from weft.calibration.fit import POOR_FIT, Calibration, Row, described
from weft.calibration.runs import ComparedTable
from weft.quantities.readable import counted, format_size
from weft.quantities.units import PS_PER_US
from weft.results.figure_tables import print_figures

_MOST_NAMED = 5


def print_calibration(console: Console, found: Calibration) -> None:
    """Print a table of sizes for each log, the keys, and what the fit cannot tell."""
    for compared, rows in found.tables:
        _print_sizes(console, compared, rows)
    print_figures(
        console,
        "keys",
        ["key", "scenario", "fitted", "effect (%)"],
        [
            [
                each.key.name,
                each.key.shown(each.before),
                "no effect, kept" if each.after is None else each.key.shown(each.after),
                f"{100 * each.effect:.0f}",
            ]
            for each in found.keys
        ],
        ["key"],
    )
    console.print()
    for line in remarks(found):
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def _print_sizes(console: Console, compared: ComparedTable, rows: tuple[Row, ...]) -> None:
    table = compared.table
    title = (
        f"{table.collective} by {compared.algorithm}, {table.ranks} ranks on {counted(table.nodes, 'host')} "
        f"({table.path})"
    )
    has_protocols = any(row.protocol for row in rows)
    print_figures(
        console,
        title,
        [
            *(["size", "protocol"] if has_protocols else ["size"]),
            *("measured (µs)", "model before (µs)", "model after (µs)", "residual (%)", ""),
        ],
        [
            [
                format_size(row.size_bytes),
                *([row.protocol] if has_protocols else []),
                *(f"{time / PS_PER_US:.2f}" for time in (row.measured_ps, row.before_ps, row.after_ps)),
                f"{100 * row.residual:+.1f}",
                "held out" if row.held_out else "",
            ]
            for row in rows
        ],
        ["size", "protocol", ""],
    )


def remarks(found: Calibration) -> Iterator[str]:
    """Yield what readers must know of a calibration: its residuals first, then its limits."""
    for held_out, name in ((False, "fitted"), (True, "held-out")):
        summary = found.summary(held_out)
        if summary is None:
            yield f"{name} sizes: none"
            continue
        middle, largest = summary
        yield (
            f"{name} sizes: median residual {100 * middle:.1f} %, largest {100 * largest:.1f} % of "
            f"{counted(len(found.residuals(held_out)), 'size')}"
        )
    for protocol in found.protocols:
        parts = [
            f"{name} sizes: median residual {100 * summary[0]:.1f} %, largest {100 * summary[1]:.1f} %"
            for held_out, name in ((False, "fitted"), (True, "held-out"))
            if (summary := found.summary_of(protocol, held_out)) is not None
        ]
        yield f"{protocol}, {'; '.join(parts)}"
    if poor := found.poor:
        worst = sorted(poor, key=lambda each: -abs(each[1].residual))[:_MOST_NAMED]
        named = "; ".join(f"{described(compared.table, row)}: {100 * row.residual:+.1f} %" for compared, row in worst)
        more = f"; and {len(poor) - len(worst)} more" if len(poor) > len(worst) else ""
        yield f"poor fit, above {100 * POOR_FIT:.0f} %: {named}{more}"
    for each in found.keys:
        if each.after is None:
            yield f"{each.key.name}: the fitted sizes do not depend on it; it keeps the scenario's value"
        elif each.at_bound:
            yield f"{each.key.name}: the fit ended at the end of its range, {each.key.shown(each.after)}"
    for group in found.undetermined:
        yield f"{' and '.join(group)}: the fitted sizes do not tell them apart; other values fit as well"
    for compared, _ in found.tables:
        for reason, sizes in compared.left_out.items():
            yield f"{compared.table.path}: {counted(len(sizes), 'size')} left out: {reason}"
        yield from compared.table.remarks
