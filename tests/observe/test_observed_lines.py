"""Counters, registers and samples on the terminal after a run that observed them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from weft.cli import weft
from weft.recording.tables import Names, integers_or_digits
from weft.results.observed import MOST_LINES, print_observed

INCAST = Path(__file__).resolve().parents[2] / "examples" / "debugging" / "incast.yaml"


def test_a_run_prints_what_it_observed(tmp_path: Path) -> None:
    observe = "observe={counters: [port_received], registers: [port_tx_bytes], state_series: ['port_tx_bytes[1]']}"
    done = CliRunner().invoke(weft, ["run", str(INCAST), "--out", str(tmp_path), "--set", observe])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    counters = lines[lines.index("counters at the end") + 2 :]
    with (tmp_path / "counters.csv").open(encoding="utf-8") as file:
        cells = [row for row in csv.DictReader(file) if row["switch"] == "p0l0"]
    packets, size = (sum(int(row[name]) for row in cells) for name in ("packets", "bytes"))
    largest = max(cells, key=lambda row: int(row["packets"]))
    assert counters[0].split() == [
        "p0l0", "FabricIngress.port_received", str(len(cells)), "cells,", "most", "in", f"[{largest['index']}]",
        f"{packets:,}", f"{size:,}",
    ]  # fmt: skip
    with (tmp_path / "state_series.csv").open(encoding="utf-8") as file:
        values = [int(row["value"]) for row in csv.DictReader(file) if row["switch"] == "p0l0"]
    (series,) = [line.split() for line in lines[lines.index("samples") :] if line.startswith("p0l0 ")]
    assert series[-3:] == [f"{value:,}" for value in (values[0], values[-1], max(values))]


def test_many_lines_are_folded_with_where_the_rest_is(capsys: pytest.CaptureFixture[str]) -> None:
    count = MOST_LINES + 3
    table = {
        "time_ps": np.arange(2 * count),
        "switch": Names.of([f"s{number % count}" for number in range(2 * count)]),
        "object": Names.of(["o"] * 2 * count),
        "key": Names.of(["0"] * 2 * count),
        "quantity": Names.of(["value"] * 2 * count),
        "value": integers_or_digits([2**70 - number for number in range(2 * count)]),
    }
    print_observed(Console(width=160), {"state_series": table}, "csv")
    output = capsys.readouterr().out
    assert "… and 3 more (state_series.csv, weft report)" in output
    first = next(line for line in output.splitlines() if line.startswith("s0 "))
    assert first.split()[-3:] == [f"{2**70:,}", f"{2**70 - count:,}", f"{2**70:,}"]


def test_nothing_counted_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    empty = {name: integers_or_digits([]) for name in ("index", "value")} | {
        name: Names.of([]) for name in ("switch", "register")
    }
    print_observed(Console(width=160), {"registers": empty}, "csv")
    assert "registers at the end: all are 0" in capsys.readouterr().out
