"""Methods of headers, unions and stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from weft.compiler import ast
from weft.compiler.ir import Const, If, Primitive, Reference
from weft.compiler.lower import build
from weft.compiler.lower.assign import invalidate
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.equality import validity
from weft.compiler.lower.values import HeaderElement, HeaderValue, P4Value, StackValue
from weft.compiler.types import StructType, bits


def call_header_method(context: Context, expression: ast.Call) -> P4Value | None:
    """Emit a method of a header, union or stack and return its result."""
    callee = expression.callee
    assert isinstance(callee, ast.Member)
    name = expression.target
    base = evaluate(context, callee.base)
    if name == "isValid":
        return validity(context, base, expression)
    if name in ("push_front", "pop_front"):
        _push_pop(context, expression, base, name)
        return None
    if name == "setValid":
        _set_valid(context, base, expression)
    elif name == "setInvalid":
        _set_invalid(context, base, expression)
    else:
        context.refuse(f"'{name}' is not known at compile time here", expression)
    return None


def _push_pop(context: Context, expression: ast.Call, base: P4Value, name: str) -> None:
    count = evaluate(context, expression.ordered[0])
    if not isinstance(count, Const) or not isinstance(base, StackValue):
        context.refuse(f"'{name}' needs a constant count", expression)
    element = base.type.element
    union = isinstance(element, StructType) and element.kind == "header_union"
    stack = Reference("header_union_stack" if union else "header_stack", base.name)
    amount = Const(min(int(count.value), len(base.elements)), bits(32))
    context.emit(Primitive(name.removesuffix("_front"), [stack, amount], expression.span))


def _set_valid(context: Context, base: P4Value, where: ast.Expression) -> None:
    if isinstance(base, HeaderValue):
        context.emit(Primitive("add_header", [Reference("header", base.name)], where.span))
    elif isinstance(base, HeaderElement):
        _each_element(context, base, where, _set_valid)
    else:
        _refuse_cursor(context, "setValid", where)


def _set_invalid(context: Context, base: P4Value, where: ast.Expression) -> None:
    if isinstance(base, HeaderElement):
        _each_element(context, base, where, _set_invalid)
    elif isinstance(base, HeaderValue):
        invalidate(context, base, where.span)
    else:
        _refuse_cursor(context, "setInvalid", where)


def _refuse_cursor(context: Context, name: str, where: ast.Expression) -> NoReturn:
    context.refuse(f"BMv2 has no '{name}' for 'next' and 'last' of a stack", where)


def _each_element(
    context: Context,
    base: HeaderElement,
    where: ast.Expression,
    do: Callable[[Context, P4Value, ast.Expression], None],
) -> None:
    for index, element in enumerate(base.stack.elements):
        with context.collecting() as code:
            do(context, element, where)
        here = build.binary("==", base.index, build.constant(index, base.index.type))
        context.emit(If(here, code, [], where.span))
