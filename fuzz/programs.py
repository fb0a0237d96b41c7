"""P4 programs to begin with: Weft's own conformance cases, each about one feature, and the fabric's program."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from weft.compiler import compile_file
from weft.switch.bmv2json import Program, load_program

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "stf" / "cases"
FABRIC = ROOT / "p4" / "fabric.p4"


def case_programs() -> list[Path]:
    """The small programs, by name."""
    return sorted(CASES.glob("*.p4"))


@cache
def document(path: Path) -> bytes:
    """The BMv2 JSON of a program."""
    return compile_file(path).json_text().encode()


@cache
def program(path: Path) -> Program:
    """The program as the switches take it."""
    return load_program(document(path))
