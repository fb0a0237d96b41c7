"""labs/23-in-network-computing: its solution is Weft's program, and each gap left open shows in a way of its own."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.errors import BadInputError, CheckFailedError
from weft.paths import P4_DIRECTORY, ROOT
from weft.results.collectives import CollectiveResult
from weft.run.runner import run_scenario
from weft.scenario import Change, load_scenario

LAB = ROOT / "labs" / "23-in-network-computing"
MODULE = runpy.run_path(str(LAB / "build.py"))
build: Callable[[Path, Path], Path] = MODULE["build"]
pieces_of: Callable[[Path], dict[str, str]] = MODULE["pieces_of"]


def test_the_solution_is_the_program(tmp_path: Path) -> None:
    program = build(LAB / "solution" / "gaps.p4", tmp_path)
    assert program.is_file()
    for source in P4_DIRECTORY.rglob("*.p4"):
        assert (tmp_path / source.relative_to(P4_DIRECTORY)).read_text() == source.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"its gaps are none \(needed, each once: first, collect, complete, again\)"),
        ("// GAP first\ntrue\n// GAP first\n", "its gaps are first, first"),
        (None, "this file of gaps cannot be read"),
    ],
)
def test_a_file_of_gaps_is_whole(text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "gaps.p4").write_text(text)
    with pytest.raises(BadInputError, match=message):
        build(tmp_path / "gaps.p4", tmp_path / "built")
    assert not (tmp_path / "built").exists()


@pytest.mark.parametrize("link", ["built", "built/include", "built/fabric.p4"])
def test_nothing_is_written_through_a_symbolic_link(link: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInputError, match="is a symbolic link"):
        build(LAB / "gaps.p4", tmp_path / "built")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def reduced(program: Path, folder: Path, **faults: float) -> CollectiveResult:
    changes = [Change("p4", str(program), "test"), Change("faults", faults, "test")]
    (found,) = run_scenario(load_scenario(LAB / "scenario.yaml", changes), directory=folder).collectives
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gap", "outcomes"),
    [
        ("first", ("exact", "wrong", "wrong")),
        ("collect", ("wrong", "wrong", "wrong")),
        ("complete", ("stuck", "stuck", "stuck")),
        ("again", ("exact", "stuck", "exact")),
    ],
)
def test_a_gap_left_open_shows(gap: str, outcomes: tuple[str, ...], tmp_path: Path) -> None:
    pieces = pieces_of(LAB / "solution" / "gaps.p4") | {gap: pieces_of(LAB / "gaps.p4")[gap]}
    text = "".join(f"// GAP {name}\n{piece}\n" for name, piece in pieces.items())
    (tmp_path / "gaps.p4").write_text(text)
    program = build(tmp_path / "gaps.p4", tmp_path / "built")
    found = []
    for number, faults in enumerate(({}, {"loss": 0.02}, {"duplicate": 0.02})):
        try:
            result = reduced(program, tmp_path / str(number), **faults)
            found.append("wrong" if result.wrong else "exact")
        except CheckFailedError:
            found.append("stuck")
    assert tuple(found) == outcomes
