"""docs/traces.md shows what commands print."""

import re

import pytest
from click.testing import CliRunner

from weft.cli import weft
from weft.jobs.traces import TRACE_FORMATS
from weft.jobs.traces.registry import format_of
from weft.paths import ROOT

PAGE = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")


EXAMPLES = re.findall(r"```\n\$ weft (.*)\n((?:.+\n)+)```", PAGE)


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_the_example_prints_what_the_page_shows(monkeypatch: pytest.MonkeyPatch, command: str, shown: str) -> None:
    monkeypatch.chdir(ROOT)
    assert CliRunner().invoke(weft, command.split()).output == shown


def test_every_format_of_recorded_calls_has_an_example() -> None:
    shown = {format_of(ROOT / command.split()[-1]).name for command, _ in EXAMPLES}
    rows = re.findall(r"^\| `(\w+)` \|.*\| .*\| [^|]+ \|$", PAGE.split("## Records of jobs that ran")[1], re.MULTILINE)
    assert rows
    assert set(rows) <= shown


def test_the_page_has_every_format() -> None:
    rows = re.findall(r"^\| (`.*`) \|.*\| (yes|no) \|$", PAGE, re.MULTILINE)
    found = {name: written == "yes" for names, written in rows for name in re.findall(r"`(\w+)`", names)}
    assert found == {name: each.is_written for name, each in TRACE_FORMATS.items()}


def test_the_page_has_the_text_of_the_csv_example() -> None:
    (text,) = re.findall(r"```\n(rank,.*?)```", PAGE, re.DOTALL)
    assert text == (ROOT / "examples/traces/nccl.csv").read_text(encoding="utf-8")
