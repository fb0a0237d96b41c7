"""Messages as plain data: what is printed, cached and written as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

_BOLD = "\x1b[1m"
_RESET = "\x1b[0m"
_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;35m", "note": "\x1b[1;36m"}
_CARET_COLOUR = "\x1b[1;32m"


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of one source line; columns count from 1, `end_column` lies just past it.

    `included_from` holds FILE:LINE of the #include directives that lead there, innermost first.
    """

    file: str
    line: int
    column: int
    end_column: int
    source_line: str
    included_from: tuple[str, ...] = ()

    def excerpt(self, colour: bool) -> list[str]:
        """The source line, and a caret under the first character with tildes under the others."""
        indent = "".join("\t" if character == "\t" else " " for character in self.source_line[: self.column - 1])
        caret = "^" + "~" * (self.end_column - self.column - 1)
        if colour:
            caret = f"{_CARET_COLOUR}{caret}{_RESET}"
        return [f"{self.line:5} | {self.source_line}", f"      | {indent}{caret}"]


@dataclass(frozen=True, slots=True)
class Report:
    """An error, warning or note; `kind` is a warning's name, for `--Wdisable` and `--Werror`."""

    severity: str
    message: str
    kind: str = ""
    place: Place | None = None
    notes: tuple[Report, ...] = ()

    def header(self, colour: bool = False) -> str:
        """The first line: `file:line:column: severity: message [--Wname]`."""
        where = f"{self.place.file}:{self.place.line}:{self.place.column}: " if self.place else ""
        severity, message = f"{self.severity}: ", self.message
        if colour:
            where = f"{_BOLD}{where}{_RESET}"
            severity = f"{_COLOURS[self.severity]}{severity}{_RESET}"
            message = f"{_BOLD}{message}{_RESET}"
        option = f" [--W{self.kind}]" if self.kind else ""
        return f"{where}{severity}{message}{option}"

    def render(self, colour: bool = False) -> str:
        """The includes that lead there, the message, its source line with a caret, then the notes."""
        lines = [f"in a file included from {place}:" for place in self.place.included_from] if self.place else []
        lines.append(self.header(colour))
        if self.place is not None:
            lines += self.place.excerpt(colour)
        lines += [note.render(colour) for note in self.notes]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """As what `json` can write."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        """The inverse of `to_json`."""
        place = data["place"]
        if place is not None:
            place = Place(**{**place, "included_from": tuple(place["included_from"])})
        notes = tuple(cls.from_json(note) for note in data["notes"])
        return cls(data["severity"], data["message"], data["kind"], place, notes)
