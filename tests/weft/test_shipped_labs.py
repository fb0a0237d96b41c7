"""`weft labs` and `lab:NAME`: the labs that ship with Weft, wherever it lies."""

from __future__ import annotations

import io
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError
from weft.paths import LABS_DIRECTORY
from weft.system.shipped_labs import lab_file, shipped_labs


def test_every_lab_is_listed_with_the_title_of_its_page() -> None:
    labs = {lab.name: lab for lab in shipped_labs()}
    assert set(labs) == {path.name for path in LABS_DIRECTORY.iterdir() if path.is_dir()}
    assert labs["10-failures"].title == "a link fails"
    assert labs["01-allreduce"].scenarios == ["scenario.yaml", "bmv2.yaml"]


def test_the_list_keeps_names_and_times_whole_at_80_columns() -> None:
    console = Console(width=80, file=io.StringIO(), force_terminal=False)
    with patch("weft.commands.labs.make_console", lambda: console):
        listed = CliRunner().invoke(weft, ["labs"])
    assert listed.exit_code == 0, listed.output
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert {lab.name for lab in shipped_labs()} == {line.split()[0][4:] for line in lines if line.startswith("lab:")}
    assert "bmv2.yaml" not in console.file.getvalue()


@pytest.mark.parametrize("name", ["1", "01-allreduce", "lab:01-allreduce"])
def test_a_lab_in_place_of_a_command_is_refused_with_what_to_type(name: str) -> None:
    outcome = CliRunner().invoke(weft, ["labs", name])
    assert outcome.exit_code == 2
    assert f"'{name}' is a lab" in outcome.output
    assert "weft labs copy 01-allreduce" in outcome.output


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("01-allreduce", "01-allreduce/scenario.yaml"),
        ("01", "01-allreduce/scenario.yaml"),
        ("1", "01-allreduce/scenario.yaml"),
        ("01-allreduce/bmv2.yaml", "01-allreduce/bmv2.yaml"),
        ("07-sweep", "07-sweep/sweep.yaml"),
    ],
)
def test_a_name_stands_for_a_file(name: str, file: str) -> None:
    assert lab_file(name) == LABS_DIRECTORY / file


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("al", {"problem": "there is no lab 'al'; valid"}),
        (
            "09-links",
            {
                "valid": ("lab:09-links/bad-cable.yaml, lab:09-links/credits.yaml, lab:09-links/switching.yaml"),
                "problem": "several scenarios",
            },
        ),
        (
            "09-links/../../p4/fabric.p4",
            {
                "valid": ("lab:09-links/bad-cable.yaml, lab:09-links/credits.yaml, lab:09-links/switching.yaml"),
                "problem": "has no scenario '",
            },
        ),
        (
            "01/",
            {
                "valid": "lab:01-allreduce/scenario.yaml, lab:01-allreduce/bmv2.yaml",
                "problem": "has no scenario ''",
            },
        ),
    ],
)
def test_a_wrong_name_is_refused_with_the_valid_ones(name: str, message: dict[str, str]) -> None:
    with refused(BadInputError, **message):
        lab_file(name)


def test_a_copy_has_all_but_the_check_and_is_never_over_another(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    first = CliRunner().invoke(weft, ["labs", "copy", "lab:09-links", str(target)])
    assert first.exit_code == 0, first.output
    assert (target / ".weft-lab").read_text() == "09-links\n"
    assert (target / "docs" / "results.md").is_file()  # the page links to it
    assert sorted(path.name for path in target.iterdir() if path.name not in {".weft-lab", "docs"}) == sorted(
        path.name for path in (LABS_DIRECTORY / "09-links").iterdir() if path.name not in {"__pycache__", "check.py"}
    )
    again = CliRunner().invoke(weft, ["labs", "copy", "09-links", str(target)])
    assert isinstance(again.exception, BadInputError)
    assert "exists already" in str(again.exception)
