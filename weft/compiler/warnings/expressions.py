"""Warns of comparisons that the types alone decide, shifts that lose all bits, constant keys."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.types import BitsType, strip_new
from weft.compiler.warnings.kinds import Kind
from weft.compiler.warnings.reporter import WarningReporter

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def check_expressions(program: ast.Program, reporter: WarningReporter) -> None:
    """Warn about expressions that are surely a mistake."""
    for node in reporter.nodes:
        if isinstance(node, ast.Binary):
            if node.operator in ("<<", ">>"):
                _shift(node, reporter)
            elif node.operator in _MIRRORED:
                _order(node, reporter)
            elif node.operator in ("==", "!=", "-", "^") and node.value is None:
                _twice_the_same(node, reporter)
        elif isinstance(node, ast.KeyElement) and node.expression.value is not None:
            reporter.warn(Kind.MISMATCH, "this key is constant", node.span)
        elif isinstance(node, ast.Unary) and node.operator == "-":
            _negative(node, reporter)
        elif isinstance(node, ast.TableDeclaration) and "size" in node.properties:
            _size(node, reporter)


def _shift(node: ast.Binary, reporter: WarningReporter) -> None:
    amount = node.right.value
    type_ = strip_new(node.left.type) if node.left.type is not None else None
    if not isinstance(type_, BitsType) or isinstance(amount, bool) or not isinstance(amount, int):
        return
    if amount >= type_.width:
        left = "all its bits are" if node.operator == "<<" or not type_.signed else "all but its sign is"
        reporter.warn(
            Kind.OVERFLOW, f"'{type_}' is shifted by {amount}, no less than its width: {left} lost", node.span
        )


def _negative(node: ast.Unary, reporter: WarningReporter) -> None:
    type_ = strip_new(node.type) if node.type is not None else None
    if isinstance(type_, BitsType) and not type_.signed and node.operand.value:
        reporter.warn(Kind.MISMATCH, f"a negative number of the unsigned '{type_}': this is {node.value}", node.span)


def _size(table: ast.TableDeclaration, reporter: WarningReporter) -> None:
    size = table.properties["size"]
    if not table.keys and size.expression.value != 1:
        reporter.warn(Kind.MISMATCH, f"table '{table.name}' has a size above 1, but no key", size.span)
    elif table.entries is not None and table.entries_const:
        reporter.warn(Kind.MISMATCH, f"table '{table.name}' has a size, but its entries are constant", size.span)


def _order(node: ast.Binary, reporter: WarningReporter) -> None:
    """A comparison with a bound of the other operand's type."""
    for operand, constant, operator in (
        (node.left, node.right, node.operator),
        (node.right, node.left, _MIRRORED[node.operator]),
    ):
        type_ = strip_new(operand.type) if operand.type is not None else None
        if operand.value is not None or not isinstance(type_, BitsType) or not isinstance(constant.value, int):
            continue
        high = (1 << (type_.width - type_.signed)) - 1
        low = -(high + 1) if type_.signed else 0
        outcome = {
            ("<", low): False,
            (">=", low): True,
            (">", high): False,
            ("<=", high): True,
        }.get((operator, constant.value))
        if outcome is not None:
            bound = f"never {'less' if constant.value == low else 'more'} than {constant.value}"
            reporter.warn(Kind.MISMATCH, f"always {str(outcome).lower()}: '{type_}' is {bound}", node.span)


def _twice_the_same(node: ast.Binary, reporter: WarningReporter) -> None:
    if _is_same_place(node.left, node.right):
        outcome = {"==": "true", "!=": "false"}.get(node.operator, "0")
        reporter.warn(Kind.MISMATCH, f"always {outcome}: both operands are the same", node.span)


def _is_same_place(left: ast.Expression, right: ast.Expression) -> bool:
    if isinstance(left, ast.Name) and isinstance(right, ast.Name):
        return left.declaration is right.declaration and left.declaration is not None
    return (
        isinstance(left, ast.Member)
        and isinstance(right, ast.Member)
        and left.name == right.name
        # A stack's next and last and the like do not differ from use to use either.
        and _is_same_place(left.base, right.base)
    )
