"""source_info objects."""

from __future__ import annotations

from typing import Any

from weft.compiler.source import Span

FRAGMENT_LIMIT = 60


def source_info(span: Span | None) -> dict[str, Any]:
    """`{"source_info": {…}}`, or nothing without a span."""
    if span is None:
        return {}
    place = span.first.place()
    line, column = span.first.line_column()
    fragment = ""
    for word in span.words():
        fragment = f"{fragment} {word}" if fragment else word
        if len(fragment) > FRAGMENT_LIMIT:
            break
    if len(fragment) > FRAGMENT_LIMIT:
        fragment = fragment[: FRAGMENT_LIMIT - 3] + "..."
    return {
        "source_info": {
            "filename": place.source.name,
            "line": line,
            "column": column - 1,
            "source_fragment": fragment,
        }
    }
