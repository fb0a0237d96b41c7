"""The texts that stand below a class's fields, from its source: Python itself does not keep them."""

from __future__ import annotations

import ast
import inspect
import textwrap


def field_docstrings(model: type) -> dict[str, str]:
    """Return the texts of the fields that have one, by field."""
    (parsed,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(parsed, ast.ClassDef)
    found = {}
    for statement, below in zip(parsed.body, parsed.body[1:], strict=False):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[statement.target.id] = inspect.cleandoc(str(below.value.value))
    return found
