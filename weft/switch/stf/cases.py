"""Test cases, programs with their scripts, and their outcomes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from weft.architectures import ARCHITECTURES
from weft.switch.coverage.model import ProgramCoverage
from weft.switch.stf.errors import StfError

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">\n]+)[">]', re.MULTILINE)
OTHER_ARCHITECTURE = "other"


class Verdict(StrEnum):
    """Verdict on a case. `refused`: it could not run; the reason names the unsupported feature."""

    PASS = "pass"
    FAIL = "fail"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Case:
    """A program and its script, and the directory to which the case's name is relative."""

    program: Path
    script: Path
    directory: Path | None = None

    @property
    def name(self) -> str:
        """The script's name without suffix, with its path below the searched directory, if any."""
        script = self.script.with_suffix("")
        return script.name if self.directory is None else script.relative_to(self.directory).as_posix()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a case; `reasons` is empty only for a pass."""

    case: Case
    architecture: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    coverage: tuple[ProgramCoverage, ...] = ()
    """Coverage by its packets, if requested."""


def find_cases(directory: Path) -> list[Case]:
    """Return all pairs of `NAME.stf` and `NAME.p4` in a directory and its subfolders, by name.

    Raises StfError if there are none.
    """
    scripts = sorted(directory.rglob("*.stf"))
    cases = [
        Case(script.with_suffix(".p4"), script, directory) for script in scripts if script.with_suffix(".p4").exists()
    ]
    if not cases:
        raise StfError("holds no NAME.stf with a NAME.p4 next to it", place=directory)
    return cases


def architecture(program: Path) -> str:
    """Return the architecture included by a program or a file that it includes in quotes; `other` if unknown."""
    seen: set[Path] = set()
    pending = [program]
    while pending:
        path = pending.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for opening, name in _INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
            if name in ARCHITECTURES:
                return ARCHITECTURES[name]
            if opening == '"':
                pending.append(path.parent / name)
    return OTHER_ARCHITECTURE
