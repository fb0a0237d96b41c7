"""Durations of labs: a line for each lab, and each page says what the table has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import lab_durations
import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError
from weft.labs.durations import (
    LabDuration,
    pages_with_durations,
    read_durations,
    rounded,
    with_duration,
    write_durations,
)
from weft.labs.page import read_lab_page
from weft.system.shipped_labs import shipped_labs

LABS = shipped_labs()


def test_each_lab_has_a_line_and_no_other() -> None:
    assert sorted(read_durations()) == [lab.name for lab in LABS]


def test_labs_with_a_run_in_mininet_have_its_duration() -> None:
    in_mininet = {lab.name for lab in LABS if lab_durations.mininet_command(read_lab_page(lab.folder / "README.md"))}
    assert "01-allreduce" in in_mininet
    assert {name for name, each in read_durations().items() if each.mininet_s is not None} == in_mininet


def test_pages_say_what_the_table_has() -> None:
    pages = pages_with_durations(read_durations(), [lab.folder for lab in LABS])
    assert [page for page, text in pages.items() if page.read_text(encoding="utf-8") != text] == []
    for lab in LABS:
        page = read_lab_page(lab.folder / "README.md")
        first = [block.source for block in page.sections[0].blocks]
        assert any(read_durations()[lab.name].sentence in source for source in first), lab.name


def test_the_list_of_labs_has_durations() -> None:
    done = CliRunner().invoke(weft, ["labs"])
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.output.splitlines() if line.startswith("lab:07-sweep")]
    assert f" {rounded(read_durations()['07-sweep'].virtual_s)} " in f"{line} "


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.01, "1 s"),
        (1.3, "1 s"),
        (1.5, "2 s"),
        (8, "10 s"),
        (24, "20 s"),
        (45, "1 min"),
        (100, "2 min"),
        (1e9, "1 h"),
    ],
)
def test_durations_are_rounded_by_ratio(seconds: float, text: str) -> None:
    assert rounded(seconds) == text


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    durations = {"02-b": LabDuration(2.0), "01-a": LabDuration(10.5, 40.0)}
    path = tmp_path / "durations.csv"
    write_durations(durations, path)
    assert path.read_text() == "lab,virtual_s,mininet_s\n01-a,10.5,40.0\n02-b,2.0,\n"
    assert read_durations(path) == durations


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "durations.csv:1: the columns are lab,virtual_s,mininet_s"),
        ("lab,virtual_s,mininet_s\na,1\n", "durations.csv:2: 2 values, where 3 are needed"),
        ("lab,virtual_s,mininet_s\na,1,\na,1,\n", "durations.csv:3: lab 'a' has a line already"),
        ("lab,virtual_s,mininet_s\na,inf,\n", "durations.csv:2: 'inf' is not a number of seconds above 0"),
        ("lab,virtual_s,mininet_s\na,1,-2\n", "durations.csv:2: '-2' is not a number of seconds above 0"),
        ("lab,virtual_s,mininet_s\na,soon,\n", "durations.csv:2: 'soon' is not a number of seconds above 0"),
    ],
)
def test_a_damaged_table_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "durations.csv"
    path.write_text(text)
    with pytest.raises(BadInputError, match=problem):
        read_durations(path)


def test_a_page_without_a_place_is_refused() -> None:
    with refused(BadInputError, place="README.md", problem="0 places for the duration"):
        with_duration("# Lab 1: x\n", LabDuration(1.0), "README.md")
    text = "<!-- made from labs/durations.csv -->\nold\n<!-- end -->\n"
    assert "about 1 s on two cores; the run in Mininet takes about 20 s.\n<!-- end" in with_duration(
        text, LabDuration(1.0, 22.0), "README.md"
    )
    with refused(BadInputError, place="durations.csv", problem="lab '01-allreduce' has no line"):
        pages_with_durations({}, [LABS[0].folder])


def test_a_command_is_measured_and_a_failure_ends_the_measurement(tmp_path: Path) -> None:
    wall_s, processor_s = lab_durations.seconds_of("python3 -c 'sum(range(10**6))'", tmp_path, tmp_path / "cache")
    assert processor_s > 0
    assert wall_s > 0
    with pytest.raises(subprocess.CalledProcessError):
        lab_durations.seconds_of("exit 3", tmp_path, tmp_path / "cache")
