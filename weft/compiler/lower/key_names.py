"""Control-plane names of table keys that have no @name (P4Runtime specification, section 6.4.1)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.types import StructType


def key_name(expression: ast.Expression) -> str | None:
    """The name a key gets from its expression; None when the program must give one."""
    if isinstance(expression, ast.Name):
        declaration = expression.declaration
        return declaration.name if isinstance(declaration, ast.Declaration) else expression.name
    if isinstance(expression, ast.Member):
        field = expression.name
        base_type = expression.base.type
        if isinstance(base_type, StructType):
            for entry in base_type.declaration.fields:
                if entry.name == field:
                    field = entry.external_name()
        if field.startswith("."):
            return field[1:]
        base = key_name(expression.base)
        return None if base is None else f"{base}.{field}"
    if isinstance(expression, ast.Call) and isinstance(expression.callee, ast.Member):
        if expression.callee.name != "isValid":
            return None
        base = key_name(expression.callee.base)
        return None if base is None else f"{base}.$valid$"
    if isinstance(expression, ast.Index):
        base, index = key_name(expression.base), key_name(expression.index)
        return None if base is None or index is None else f"{base}[{index}]"
    if isinstance(expression, ast.Slice):
        base = key_name(expression.base)
        high, low = key_name(expression.high), key_name(expression.low)
        return None if base is None or high is None or low is None else f"{base}[{high}:{low}]"
    if isinstance(expression, ast.Binary) and expression.operator == "&":
        left, right = key_name(expression.left), key_name(expression.right)
        return None if left is None or right is None else f"{left} & {right}"
    if isinstance(expression, ast.IntegerLiteral):
        return _literal(expression)
    return None


def _literal(expression: ast.IntegerLiteral) -> str:
    text = expression.span.first.text.lower()
    for marker in "ws":
        head, found, tail = text.partition(marker)
        if found and head.isdigit():
            text = tail
            break
    if text.startswith("0x"):
        return f"0x{expression.number:x}"
    if text.startswith("0b"):
        return f"0b{expression.number:b}"
    return str(expression.number)
