"""Records warnings, except those in the built-in includes and those that `@noWarn` suppresses."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.diagnostics import Diagnostic, Diagnostics
from weft.compiler.preprocess import BUILTIN_INCLUDES
from weft.compiler.source import SourceFile, Span
from weft.compiler.warnings.kinds import Kind
from weft.compiler.warnings.walk import walk

_BUILTIN = f"{BUILTIN_INCLUDES}/"


class WarningReporter:
    """Collects warnings and passes them on in the order of the source; `nodes` are all of the program's."""

    def __init__(self, program: ast.Program, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._found: list[tuple[Kind, Diagnostic]] = []
        self.nodes = list(walk(program))
        self._silent = _silent_stretches(self.nodes)

    def warn(self, kind: Kind, message: str, span: Span) -> Diagnostic:
        """A warning about `span`; notes may be added to what is returned."""
        diagnostic = Diagnostic("warning", message, span, kind=kind.value)
        if not is_builtin(span):
            self._found.append((kind, diagnostic))
        return diagnostic

    def finish(self) -> None:
        """Pass on what has been found."""
        order: dict[int, int] = {}
        for _, diagnostic in self._found:
            assert diagnostic.span is not None
            order.setdefault(id(diagnostic.span.first.place().source), len(order))
        for kind, diagnostic in sorted(self._found, key=lambda entry: _position(entry[1], order)):
            assert diagnostic.span is not None
            if not self._is_silent(kind, diagnostic.span):
                made = self._diagnostics.warning(diagnostic.message, diagnostic.span, kind)
                made.notes = diagnostic.notes

    def _is_silent(self, kind: Kind, span: Span) -> bool:
        place = span.first.place()
        return any(
            source is place.source and start <= place.offset < end
            for source, start, end in self._silent.get(kind.value, ())
        )


def is_builtin(span: Span) -> bool:
    """Whether something is in core.p4 or v1model.p4."""
    return span.first.place().source.name.startswith(_BUILTIN)


def _position(diagnostic: Diagnostic, order: dict[int, int]) -> tuple[int, int]:
    assert diagnostic.span is not None
    place = diagnostic.span.first.place()
    return order[id(place.source)], place.offset


def _silent_stretches(nodes: list[ast.Node]) -> dict[str, list[tuple[SourceFile, int, int]]]:
    """Where each kind of warning is suppressed: in declarations with `@noWarn("kind")`."""
    stretches: dict[str, list[tuple[SourceFile, int, int]]] = {}
    for node in nodes:
        if isinstance(node, ast.Declaration | ast.Block):
            for annotation in node.annotations:
                if annotation.name == "noWarn":
                    first, last = node.span.first.place(), node.span.last.place()
                    for kind in annotation.strings():
                        stretches.setdefault(kind, []).append((first.source, first.offset, last.end))
    return stretches
