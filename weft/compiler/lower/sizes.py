"""Sizes: of expressions, which are cut into steps, and of what the control plane sees, which has bounds."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.budgets import CONTROL_PLANE_SIZE
from weft.compiler.ir import Const, Expr
from weft.compiler.lower.context import Context
from weft.compiler.lower.values import P4Value

LARGEST_DEPTH = 64
LARGEST_COUNT = 512
"""An expression that is deeper or has more parts is computed in several steps: BMv2 reads JSON of 1,000 levels at most,
and what reads and compiles it recurses through it.
"""
_WITHOUT_STATEMENTS = {
    "verify": "the checksums' control",
    "update": "the checksums' control",
    "deparser": "the deparser",
}


def shallow(context: Context, value: Expr, where: ast.Node) -> Expr:
    """The value; where it is large, a variable that it is assigned to before."""
    if not is_large(value):
        return value
    place = _WITHOUT_STATEMENTS.get(context.place)
    if place is not None:
        context.refuse(
            f"an expression in {place} has at most {LARGEST_COUNT} parts and {LARGEST_DEPTH} levels",
            where,
        )
    return context.snapshot(value, where.span)


def control_plane_size(
    context: Context, value: P4Value | None, what: str, where: ast.Node, limit: int = CONTROL_PLANE_SIZE
) -> int:
    """A size known at compile time and within its bound."""
    assert isinstance(value, Const)
    if 0 <= value.value <= limit:
        return int(value.value)
    context.diagnostics.error(f"{what} is {value.value}, which is out of range (valid: 0 to {limit})", where.span)
    return 1


def is_large(expression: Expr) -> bool:
    """Whether an expression is deeper or has more parts than one step computes."""
    count = 0
    pending = [(expression, 1)]
    while pending:
        current, depth = pending.pop()
        count += 1
        if depth > LARGEST_DEPTH or count > LARGEST_COUNT:
            return True
        pending += [(child, depth + 1) for child in current.children()]
    return False
