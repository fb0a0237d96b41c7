"""A comparison of runs as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from weft.report.comparison import Comparison, Figure
from weft.report.markdown import write_markdown_tables
from weft.sweeps.axes import plain_text
from weft.system.writing import written_whole


def write_csv(compared: Comparison, target: Path, whole: bool = False) -> Path:
    """Write one table, whole or not at all: parameters that differ, all figures with ratios, and the ranking.

    Its columns are `section`, `result`, `figure`, the runs by their names, and a ratio to the first for each other run.
    Figures are not rounded. `whole`: derived parameters and counters as well.
    """
    names = compared.names
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["section", "result", "figure", *names, *(f"{name} ratio" for name in names[1:])])
    sections: list[tuple[str, Sequence[Figure]]] = [
        ("parameter", compared.parameters),
        *([("parameter in force", compared.derived)] if whole else []),
        ("result", compared.results),
        ("whole run", compared.whole),
        *([("counter", compared.counters)] if whole else []),
    ]
    for section, figures in sections:
        for each in figures:
            ratios = each.ratios if each.digits is not None else [None] * (len(names) - 1)
            writer.writerow([section, each.result, each.name, *map(plain_text, (*each.values, *ratios))])
    ranks = {run.name: place for place, run, _ in compared.ranking.places()}
    writer.writerow(["rank", "", compared.ranking.heading, *(plain_text(ranks.get(name)) for name in names)])
    return _write(text.getvalue(), target)


def write_markdown(compared: Comparison, target: Path, whole: bool = False) -> Path:
    """Write the tables that the terminal shows, whole or not at all."""
    return write_markdown_tables(compared.names, compared.tables(whole).values(), target)


def _write(text: str, target: Path) -> Path:
    with written_whole(target) as partial:
        partial.write_text(text, encoding="utf-8", newline="")
    return target
