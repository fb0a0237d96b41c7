"""Names, members and elements in expressions."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Const, Expr
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.members import member_of
from weft.compiler.lower.tables import table_result
from weft.compiler.lower.targets import evaluate_in_order
from weft.compiler.lower.values import HeaderElement, P4Value, SetValue, StackValue, StructValue
from weft.compiler.types import StructType


def evaluate_name(context: Context, expression: ast.Name) -> P4Value:
    """The value that a name stands for in the current frame."""
    declaration = expression.declaration
    value: P4Value | None = context.frame.find(declaration) if declaration is not None else None
    if value is None and isinstance(declaration, ast.ConstantDeclaration):
        return evaluate(context, declaration.initial)
    if value is None and isinstance(declaration, ast.ValueSetDeclaration):
        return SetValue(declaration.name)
    assert value is not None
    return value


def evaluate_member(context: Context, expression: ast.Member) -> P4Value:
    """base.name, and table.apply().hit or .miss."""
    base_expression = expression.base
    if isinstance(base_expression, ast.Call) and base_expression.kind == "table":
        return table_result(context, base_expression, expression.name)
    base = evaluate(context, base_expression)
    return member_of(context, base, expression.name, expression)


def evaluate_index(context: Context, expression: ast.Index) -> P4Value:
    """stack[index] or array[index]."""
    base, index = evaluate_in_order(context, [expression.base, expression.index])
    if isinstance(base, StructValue):
        if not isinstance(index, Const):
            context.refuse("an array needs an index known at compile time on BMv2", expression.index)
        if str(index.value) not in base.fields:
            context.refuse(f"index {index.value} is out of the range of '{base.type}'", expression.index)
        return base.fields[str(index.value)]
    assert isinstance(base, StackValue)
    if isinstance(index, Const):
        if not 0 <= index.value < len(base.elements):
            context.refuse(
                f"index {index.value} is out of the range of a stack of {len(base.elements)}",
                expression.index,
            )
        return base.elements[index.value]
    element = base.type.element
    if isinstance(element, StructType) and element.kind == "header_union":
        context.refuse("a stack of header unions needs an index known at compile time", expression.index)
    assert isinstance(index, Expr)
    return HeaderElement(base, context.snapshot(index) if context.freeze_indices else context.simple(index))
