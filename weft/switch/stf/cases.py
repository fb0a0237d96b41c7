"""A program with its script, and how it came out."""

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
    """`refused`: the case could not be tried, and the reason says what is not supported."""

    PASS = "pass"
    FAIL = "fail"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Case:
    """A program and the script for it, and the directory that its name is relative to."""

    program: Path
    script: Path
    directory: Path | None = None

    @property
    def name(self) -> str:
        """The script's name without its suffix, behind the folders below the directory, if it was searched."""
        script = self.script.with_suffix("")
        return script.name if self.directory is None else script.relative_to(self.directory).as_posix()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case came out; `reasons` is empty only for a pass."""

    case: Case
    architecture: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    coverage: tuple[ProgramCoverage, ...] = ()
    """What its packets reached, where that was asked for."""


def find_cases(directory: Path) -> list[Case]:
    """All `NAME.stf` in a directory and the folders below that have a `NAME.p4` beside them, by name.

    StfError if there is none.
    """
    scripts = sorted(directory.rglob("*.stf"))
    cases = [
        Case(script.with_suffix(".p4"), script, directory)
        for script in scripts
        if script.with_suffix(".p4").exists()
    ]
    if not cases:
        raise StfError(f"{directory}: holds no NAME.stf with a NAME.p4 beside it")
    return cases


def architecture(program: Path) -> str:
    """The architecture that a program, or a file it includes in quotes, includes; `other` if none is known."""
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
