"""What can go wrong with an STF script, always with its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weft.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a script."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class StfSyntaxError(BadInputError):
    """A line that is no statement of the language; the message begins with its place."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"{place}: {message}")


class StfStatementError(Exception):
    """A statement that does not fit the program it is written for; whoever runs it adds the place."""
