"""Typing of casts (specification, section 8.11.1)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.coerce import coerce
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.type_nodes import resolve
from weft.compiler.fold import wrap
from weft.compiler.types import (
    BOOL,
    INTEGER,
    UNKNOWN,
    AnonymousStructType,
    BitsType,
    ListType,
    NewType,
    SetType,
    StructType,
    TupleType,
    Type,
    TypeVariable,
    bits,
    is_header,
    strip_enum,
    strip_new,
)


def infer_cast(context: CheckContext, expression: ast.Cast, expected: Type | None) -> Type:
    """`(target) operand`; folds it if the operand's value is known."""
    target = resolve(context, expression.target)
    if target is UNKNOWN:
        infer(context, expression.operand)
        return UNKNOWN
    source = infer(context, expression.operand, target)
    if source is UNKNOWN:
        return UNKNOWN
    value = expression.operand.value
    literals = (ast.ListExpression, ast.StructExpression, ast.InvalidHeader, ast.DefaultExpression)
    if isinstance(expression.operand, literals):
        coerce(context, expression.operand, target)
        expression.value = expression.operand.value
        return target
    if not _castable(source, target):
        diagnostic = context.error(f"cannot cast '{source}' to '{target}'", expression)
        if isinstance(source, BitsType) and isinstance(target, BitsType):
            diagnostic.note(
                f"width and sign change one after the other: ({target})({bits(target.width, source.signed)})…",
                None,
            )
        return UNKNOWN
    if value is not None and isinstance(value, int):
        stripped = strip_enum(strip_new(target))
        if stripped is BOOL:
            expression.value = bool(value)
        else:
            expression.value = wrap(int(value), stripped)
    elif value is not None and source == target:
        expression.value = value
    return target


def _castable(source: Type, target: Type) -> bool:
    """Explicit casts (specification, section 8.11.1)."""
    if source == target or isinstance(source, TypeVariable) or isinstance(target, TypeVariable):
        return True
    plain_source, plain_target = strip_enum(strip_new(source)), strip_enum(strip_new(target))
    if isinstance(source, NewType) or isinstance(target, NewType):
        if plain_source == plain_target:
            return True
        if plain_source is INTEGER and isinstance(plain_target, BitsType):
            return True
        if isinstance(plain_source, BitsType) and isinstance(plain_target, BitsType):
            return False
    if isinstance(plain_source, BitsType) and isinstance(plain_target, BitsType):
        return plain_source.signed == plain_target.signed or plain_source.width == plain_target.width
    if plain_source is INTEGER:
        return isinstance(plain_target, BitsType) or plain_target in (INTEGER, BOOL)
    if plain_source is BOOL:
        return isinstance(plain_target, BitsType) and plain_target.width == 1 and not plain_target.signed
    if plain_target is BOOL:
        return isinstance(plain_source, BitsType) and plain_source.width == 1 and not plain_source.signed
    if plain_target is INTEGER:
        return isinstance(plain_source, BitsType)
    if isinstance(source, TupleType | AnonymousStructType):
        return isinstance(target, TupleType | StructType | ListType | SetType)
    return is_header(source) and source == target
