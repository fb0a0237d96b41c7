"""Bodies that jumps leave: a label where any is left, nothing where none is."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ir
from weft.compiler.source import Span


def labeled(label: int, code: list[ir.Stmt], span: Span | None) -> list[ir.Stmt]:
    """Labeled(label, code) without the jumps at its end; plain `code` when no jump is left."""
    code = _without_tail_jumps(label, code)
    if _jumps_to(label, code):
        return [ir.Labeled(label, code, span)]
    return code


def _without_tail_jumps(label: int, code: list[ir.Stmt]) -> list[ir.Stmt]:
    while code and isinstance(code[-1], ir.Jump) and code[-1].label == label:
        code = code[:-1]
    if code and isinstance(code[-1], ir.If):
        last = code[-1]
        then = _without_tail_jumps(label, last.then)
        otherwise = _without_tail_jumps(label, last.otherwise)
        code = [*code[:-1], ir.If(last.condition, then, otherwise, last.span)]
    return code


def _jumps_to(label: int, code: Sequence[ir.Stmt]) -> bool:
    for statement in code:
        if isinstance(statement, ir.Jump) and statement.label == label:
            return True
        if any(_jumps_to(label, branch) for branch in branches_of(statement)):
            return True
    return False


def branches_of(statement: ir.Stmt) -> list[list[ir.Stmt]]:
    """The statement lists inside a statement."""
    if isinstance(statement, ir.If):
        return [statement.then, statement.otherwise]
    if isinstance(statement, ir.Labeled):
        return [statement.body]
    if isinstance(statement, ir.Loop):
        return [statement.head, statement.body]
    if isinstance(statement, ir.Apply):
        lists = [statement.hit, statement.miss, statement.default, *(statement.branches or {}).values()]
        return [branch for branch in lists if branch]
    return []
