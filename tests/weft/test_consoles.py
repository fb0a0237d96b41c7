"""Tables in pipes and files: other programs read them, so that no cell is cut or wrapped."""

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console
from rich.table import Table

from weft.results.figure_tables import print_figures
from weft.system.consoles import TEXT_WIDTH, PipeConsole, make_console
from weft.system.shipped_labs import LAB_PREFIX, shipped_labs

LONG = "/".join(["a rather long name"] * 20)
SHORT = "x"


def printed(table: Table | str, width: int = TEXT_WIDTH) -> list[str]:
    stream = io.StringIO()
    PipeConsole(file=stream, highlight=False, width=width).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def table_of(*rows: tuple[str, ...], headings: tuple[str, ...] = ("name", "figure")) -> Table:
    table = Table(*headings, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def test_a_name_wider_than_the_console_is_whole_and_on_its_line() -> None:
    assert printed(table_of((LONG, "1"), (SHORT, "2")))[1:] == [f"{LONG}  1", SHORT.ljust(len(LONG)) + "  2"]


@pytest.mark.parametrize("width", [20, 80, TEXT_WIDTH])
def test_many_columns_of_names_are_whole(width: int) -> None:
    names = tuple(f"name of column {number}" for number in range(12))
    lines = printed(table_of(names, headings=tuple("abcdefghijkl")), width)
    assert lines[1:] == ["  ".join(names)]


def test_a_table_that_fits_is_as_rich_prints_it() -> None:
    stream = io.StringIO()
    Console(file=stream, width=TEXT_WIDTH).print(table_of((SHORT, "1")))
    assert printed(table_of((SHORT, "1"))) == [line.rstrip() for line in stream.getvalue().splitlines()]


def test_headings_wrap_where_the_table_does_not_fit() -> None:
    lines = printed(table_of(("y" * 100, "1"), headings=("name", "a figure with words in its heading")))
    assert len(lines) > 2
    assert lines[-1].split() == ["y" * 100, "1"]
    assert max(map(len, lines)) <= TEXT_WIDTH


def test_a_box_around_a_table_is_whole_too() -> None:
    table = Table("case", "reason")
    table.add_row(LONG, LONG)
    lines = printed(table)
    assert len({len(line) for line in lines}) == 1
    assert f"│ {LONG} │ {LONG} │" in lines


def test_text_after_a_table_wraps_as_before() -> None:
    stream = io.StringIO()
    console = PipeConsole(file=stream, highlight=False, width=40)
    console.print(table_of((LONG, "1")))
    console.print("word " * 20)
    assert max(map(len, stream.getvalue().splitlines()[2:])) <= 40


def test_markup_in_a_cell_is_not_measured() -> None:
    assert printed(table_of((f"[bold]{LONG}[/bold]", "1")))[1] == f"{LONG}  1"


def test_results_are_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_figures(make_console(), "", ("flow", "time"), [(LONG, "1.5")], ("flow",))
    assert capsys.readouterr().out.splitlines()[1].split() == [*LONG.split(), "1.5"]


def test_a_terminal_still_fits_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not isinstance(make_console(), PipeConsole)


@pytest.mark.parametrize("columns", [None, "40"])
def test_a_command_prints_the_same_whole_names_into_every_pipe(columns: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    environment |= {} if columns is None else {"COLUMNS": columns}
    command = [sys.executable, "-m", "weft", "labs"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [LAB_PREFIX + lab.name for lab in shipped_labs()]
    assert [
        line.rstrip().endswith(", ".join(lab.scenarios)) for line, lab in zip(lines[1:], shipped_labs(), strict=True)
    ]
    assert all(lab.title in line for line, lab in zip(lines[1:], shipped_labs(), strict=True))
