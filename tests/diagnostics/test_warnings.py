"""Warnings of whole programs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from weft.compiler import compile_file

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "compiler" / "broken" / "warnings"
P4C = shutil.which("p4c-bm2-ss")
P4C_WARNING = re.compile(r"^[^\s(]+\((\d+)\): \[--Wwarn=([a-z-]+)\]", re.MULTILINE)


def our_warnings(program: Path) -> set[tuple[str, int]]:
    """(kind, line) of our warnings."""
    reports = [warning.report() for warning in compile_file(program).warnings]
    return {(report.kind, report.place.line) for report in reports if report.place is not None}


def test_the_fabric_has_no_warnings() -> None:
    assert [warning.header() for warning in compile_file(ROOT / "p4" / "fabric.p4").warnings] == []


@pytest.mark.reference
@pytest.mark.skipif(P4C is None, reason="p4c-bm2-ss is not on PATH")
@pytest.mark.parametrize("name", ["invalid_header", "out_parameters", "ordering", "unused", "initialized"])
def test_p4c_warns_of_the_same_lines(name: str, tmp_path: Path) -> None:
    """Kinds that both compilers have; p4c-bm2-ss must not find one that ours misses."""
    kinds = {"invalid-header", "uninitialized-out-param", "ordering", "unused"}
    program = GOLDEN / f"{name}.p4"
    command = [str(P4C), "--std", "p4-16", "-o", str(tmp_path / "out.json"), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs = {(kind, int(line)) for line, kind in P4C_WARNING.findall(done.stderr) if kind in kinds}
    assert theirs <= our_warnings(program), theirs - our_warnings(program)
    assert bool(theirs) == (name != "initialized")
