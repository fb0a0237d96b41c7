"""Walking and comparing expressions of the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator

from weft.compiler import ast


def parts(expression: ast.Node) -> list[ast.Expression]:
    """The direct subexpressions, in order."""
    if isinstance(expression, ast.Member):
        return [expression.base]
    if isinstance(expression, ast.Index):
        return [expression.base, expression.index]
    if isinstance(expression, ast.Slice):
        return [expression.base, expression.high, expression.low]
    if isinstance(expression, ast.Unary | ast.Cast):
        return [expression.operand]
    if isinstance(expression, ast.Binary):
        return [expression.left, expression.right]
    if isinstance(expression, ast.Ternary):
        return [expression.condition, expression.first, expression.second]
    if isinstance(expression, ast.ListExpression | ast.KeysetTuple):
        return list(expression.elements)
    if isinstance(expression, ast.StructExpression):
        return [element.expression for element in expression.elements]
    if isinstance(expression, ast.Call):
        given = [argument.expression for argument in expression.arguments]
        return [expression.callee, *(argument for argument in given if argument is not None)]
    return []


def walk(expression: ast.Node) -> Iterator[ast.Node]:
    """The expression and everything in it, outer ones first."""
    pending = [expression]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(parts(current)))


def same_expression(left: ast.Node, right: ast.Node) -> bool:
    """Whether two checked expressions are written alike and mean the same things."""
    known, other = getattr(left, "value", None), getattr(right, "value", None)
    if known is not None and other is not None:
        return bool(known == other)
    if type(left) is not type(right):
        return False
    if isinstance(left, ast.Name) and isinstance(right, ast.Name):
        return left.declaration is right.declaration and left.name == right.name
    if _label(left) != _label(right):
        return False
    inner, others = parts(left), parts(right)
    return len(inner) == len(others) and all(map(same_expression, inner, others))


def _label(expression: ast.Node) -> object:
    """The operator or the names in an expression, which its parts do not show."""
    if isinstance(expression, ast.Member):
        return expression.name
    if isinstance(expression, ast.Unary | ast.Binary):
        return expression.operator
    if isinstance(expression, ast.StructExpression):
        return [element.name for element in expression.elements]
    if isinstance(expression, ast.Call):
        return [argument.name for argument in expression.arguments]
    return None
