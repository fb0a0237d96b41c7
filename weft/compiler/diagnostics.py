"""Collects errors, warnings and notes with the places they are about."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.compiler.report import Place, Report
from weft.compiler.source import Span, Token
from weft.compiler.warnings.kinds import Kind

ERROR_LIMIT = 50
INCLUDES_SHOWN = 4
"""A message shows this many of a chain of includes: the innermost ones and the first."""


@dataclass(slots=True)
class Diagnostic:
    """One message about one place; `notes` point to related places, `kind` is a warning's name."""

    severity: str
    message: str
    span: Span | None
    notes: list[Diagnostic] = field(default_factory=list)
    kind: str = ""

    def note(self, message: str, where: Span | Token | None) -> Diagnostic:
        """Add a note and return self."""
        self.notes.append(Diagnostic("note", message, as_span(where)))
        return self

    def report(self) -> Report:
        """The message as plain data."""
        return self._report(with_includes=True)

    def _report(self, with_includes: bool) -> Report:
        notes = [note._report(with_includes=False) for note in self.notes]
        place = None
        if self.span is not None:
            place = _place(self.span, with_includes)
            notes = _expansion_notes(self.span.first) + notes
        return Report(self.severity, self.message, self.kind, place, tuple(notes))

    def header(self) -> str:
        """The first line: `file:line:column: severity: message`."""
        return self.report().header()

    def render(self, colour: bool = False) -> str:
        """The message, its source line with a caret, then the notes."""
        return self.report().render(colour)


class CompileError(Exception):
    """The program was refused; `diagnostics` says why, in source order of discovery."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n".join(diagnostic.render() for diagnostic in diagnostics))


class Diagnostics:
    """Collects the messages of one compilation."""

    def __init__(self) -> None:
        self.messages: list[Diagnostic] = []
        self.error_count = 0
        self._seen: set[tuple[str, int, str]] = set()

    def error(self, message: str, where: Span | Token | None) -> Diagnostic:
        """Record an error; a repetition of the same message at the same place is dropped."""
        diagnostic = self._add("error", message, where)
        if self.error_count >= ERROR_LIMIT:
            diagnostic.note(f"{ERROR_LIMIT} errors; giving up", None)
            raise CompileError(self.messages)
        return diagnostic

    def warning(self, message: str, where: Span | Token | None, kind: Kind) -> Diagnostic:
        """Record a warning."""
        diagnostic = self._add("warning", message, where)
        diagnostic.kind = kind.value
        return diagnostic

    def _add(self, severity: str, message: str, where: Span | Token | None) -> Diagnostic:
        span = as_span(where)
        diagnostic = Diagnostic(severity, message, span)
        if span is not None:
            place = span.first.place()
            key = (place.source.name, place.offset, message)
            if key in self._seen:
                return diagnostic
            self._seen.add(key)
        self.messages.append(diagnostic)
        if severity == "error":
            self.error_count += 1
        return diagnostic

    def raise_if_errors(self) -> None:
        """Raise CompileError when any error was recorded."""
        if self.error_count:
            raise CompileError(self.messages)

    @property
    def warnings(self) -> list[Diagnostic]:
        """The recorded warnings."""
        return [message for message in self.messages if message.severity == "warning"]


class Refused(Exception):
    """Raised after `Diagnostics.error`, within a stage, to abandon the current declaration."""


def as_span(where: Span | Token | None) -> Span | None:
    """A span for a token, a span or nothing."""
    if where is None or isinstance(where, Span):
        return where
    return Span(where, where)


def _place(span: Span, with_includes: bool) -> Place:
    first, last = span.first.place(), span.last.place()
    source = first.source
    line, column = source.line_column(first.offset)
    text = source.line_text(line)
    end = last.end if last.source is source and last.end > first.offset else first.end
    width = max(1, min(end - first.offset, len(text) - column + 1))
    return Place(source.name, line, column, column + width, text, _includes(first) if with_includes else ())


def _includes(token: Token) -> tuple[str, ...]:
    places: list[str] = []
    directive = token.source.included_by
    while directive is not None:
        places.append(f"{directive.source.name}:{directive.line_column()[0]}")
        directive = directive.source.included_by
    if len(places) > INCLUDES_SHOWN:
        places[INCLUDES_SHOWN - 1 : -1] = []
    return tuple(places)


def _expansion_notes(token: Token) -> list[Report]:
    if token.expansion is None:
        return []
    line, column = token.source.line_column(token.offset)
    text = token.source.line_text(line)
    place = Place(token.source.name, line, column, column + 1, text)
    return [Report("note", f"in the expansion of macro '{token.place().text}'", "", place)]
