"""Errors, warnings and notes with file, line, column and a caret under the offending text."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.source import Span, Token

ERROR_LIMIT = 50


@dataclass(slots=True)
class Diagnostic:
    """One message about one place; `notes` point to related places."""

    severity: str
    message: str
    span: Span | None
    notes: list[Diagnostic] = field(default_factory=list)

    def note(self, message: str, where: Span | Token | None) -> Diagnostic:
        """Add a note and return self."""
        self.notes.append(Diagnostic("note", message, as_span(where)))
        return self

    def header(self) -> str:
        """The first line: `file:line:column: severity: message`."""
        if self.span is None:
            return f"{self.severity}: {self.message}"
        line, column = self.span.first.line_column()
        return f"{self.span.first.place().source.name}:{line}:{column}: {self.severity}: {self.message}"

    def render(self) -> str:
        """The message, its source line with a caret, then the notes."""
        lines = [self.header()]
        if self.span is not None:
            lines += _excerpt(self.span)
            lines += _expansion_notes(self.span.first)
        for note in self.notes:
            lines.append(note.render())
        return "\n".join(lines)


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

    def warning(self, message: str, where: Span | Token | None) -> Diagnostic:
        """Record a warning."""
        return self._add("warning", message, where)

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
    """Thrown inside a stage to abandon the current declaration after `Diagnostics.error`."""


def as_span(where: Span | Token | None) -> Span | None:
    """A span for a token, a span or nothing."""
    if where is None or isinstance(where, Span):
        return where
    return Span(where, where)


def _excerpt(span: Span) -> list[str]:
    first, last = span.first.place(), span.last.place()
    source = first.source
    line, column = source.line_column(first.offset)
    text = source.line_text(line)
    end = last.end if last.source is source and last.end > first.offset else first.end
    width = max(1, min(end, first.offset - column + 1 + len(text)) - first.offset)
    indent = "".join("\t" if character == "\t" else " " for character in text[: column - 1])
    return [f"{line:5} | {text}", f"      | {indent}^{'~' * (width - 1)}"]


def _expansion_notes(token: Token) -> list[str]:
    if token.expansion is None:
        return []
    use = token.place()
    line, column = token.source.line_column(token.offset)
    text = f"{token.source.name}:{line}:{column}: note: in the expansion of macro '{use.text}'"
    return [text, f"{line:5} | {token.source.line_text(line)}", f"      | {' ' * (column - 1)}^"]
