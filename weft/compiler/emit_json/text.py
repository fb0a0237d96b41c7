"""The JSON document as text."""

from __future__ import annotations

import json
from typing import Any

INDENTED_DEPTH = 5
"""Levels that are spread over lines. What is deeper, operands for the most part, stays on its line: spread out, too,
it would take three times as long to write, and twice the space.
"""

_encode = json.JSONEncoder().encode


def document_text(document: dict[str, Any]) -> str:
    """JSON text of `document`, indented, with a newline at its end."""
    return _spread(document, INDENTED_DEPTH, "\n") + "\n"


def _spread(value: Any, depth: int, line_end: str) -> str:
    """`value` with `depth` levels spread over lines; `line_end` is a newline and the indentation of its own line."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        return _encode(value)
    inner = line_end + "  "
    if isinstance(value, dict):
        members = [f"{_encode(name)}: {_spread(each, depth - 1, inner)}" for name, each in value.items()]
        return f"{{{inner}{f',{inner}'.join(members)}{line_end}}}"
    return f"[{inner}{f',{inner}'.join(_spread(each, depth - 1, inner) for each in value)}{line_end}]"
