"""Tables of a report as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from weft.results.report_parts import ReportTable
from weft.system.writing import written_whole


def write_csv_tables(tables: Iterable[ReportTable], target: Path) -> Path:
    """Write tables one after another, whole or not at all; returns the path.

    A row's first cell is its table's title; each table begins with a row of its columns.

    Raises:
        EnvironmentLacksError: the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for table in tables:
        writer.writerow(["table", *table.columns])
        writer.writerows([table.title, *row] for row in table.rows)
    with written_whole(target) as partial:
        partial.write_text(text.getvalue(), encoding="utf-8", newline="")
    return target
