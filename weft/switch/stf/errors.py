"""Errors of STF scripts and their programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.errors import Refusal


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a script."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class StfError(Refusal, ValueError):
    """A script, its program or a directory of cases that cannot be used."""


class StfSyntaxError(StfError):
    """An invalid line; the message begins with its place."""

    def __init__(self, place: Place, message: str, *, valid: str = "") -> None:
        super().__init__(message, place=place, valid=valid)


class ProgramRefusedError(StfError):
    """The compiler refused the program of a case, for these reasons."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


class StfStatementError(Exception):
    """A statement that does not fit the program; the runner adds the place."""
