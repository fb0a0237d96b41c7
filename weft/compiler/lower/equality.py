"""Comparison of values of any type (specification, sections 8.16 to 8.19), and validity."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Const, Expr, LastIndex, UnionValid, Valid
from weft.compiler.lower import build
from weft.compiler.lower.assign import read_cursor
from weft.compiler.lower.context import Context
from weft.compiler.lower.conversions import retyped
from weft.compiler.lower.members import member_of
from weft.compiler.lower.sizes import shallow
from weft.compiler.lower.values import (
    HeaderElement,
    HeaderLiteral,
    HeaderValue,
    P4Value,
    StackCursor,
    StackValue,
    StructValue,
    UnionCursor,
    UnionValue,
)
from weft.compiler.types import StructType, bits


def equal(context: Context, left: P4Value, right: P4Value, where: ast.Node) -> Expr:
    """Whether two values of one type are equal (specification, sections 8.16 to 8.19)."""
    if isinstance(left, Expr) and isinstance(right, Expr):
        if left.type != right.type:
            if isinstance(left, Const):
                left = build.convert(left, right.type)
            else:
                right = build.convert(right, left.type)
        return build.binary("==", left, right)
    if isinstance(left, StructValue) and isinstance(right, StructValue):
        same: Expr = build.TRUE
        pairs = zip(left.fields.values(), right.fields.values(), strict=True)
        if set(left.fields) == set(right.fields):
            pairs = zip(left.fields.values(), [right.fields[name] for name in left.fields], strict=True)
        for first, second in pairs:
            same = shallow(context, build.both(same, equal(context, first, second, where)), where)
        return same
    if isinstance(left, StackValue) and isinstance(right, StackValue):
        same = build.TRUE
        for first, second in zip(left.elements, right.elements, strict=True):
            same = shallow(context, build.both(same, equal(context, first, second, where)), where)
        return same
    if isinstance(left, UnionValue) and isinstance(right, UnionValue):
        same = build.TRUE
        for first, second in zip(left.members.values(), right.members.values(), strict=True):
            same = shallow(context, build.both(same, equal(context, first, second, where)), where)
        return same
    return _equal_headers(context, left, right, where)


def _equal_headers(context: Context, left: P4Value, right: P4Value, where: ast.Node) -> Expr:
    if isinstance(left, StructValue) and isinstance(right, HeaderValue):
        left = retyped(left, right.type)
    if isinstance(right, StructValue) and isinstance(left, HeaderValue):
        right = retyped(right, left.type)
    left = read_cursor(context, left, where) if isinstance(left, StackCursor | UnionCursor) else left
    right = read_cursor(context, right, where) if isinstance(right, StackCursor | UnionCursor) else right
    left_valid, right_valid = validity(context, left, where), validity(context, right, where)
    if isinstance(left, HeaderLiteral) and left.fields is None:
        return build.negate(right_valid)
    if isinstance(right, HeaderLiteral) and right.fields is None:
        return build.negate(left_valid)
    same: Expr = build.both(left_valid, right_valid)
    for name in _header_type(left).fields:
        first, second = member_of(context, left, name, where), member_of(context, right, name, where)  # type: ignore[arg-type]
        same = shallow(context, build.both(same, equal(context, first, second, where)), where)
    return build.either(build.both(build.negate(left_valid), build.negate(right_valid)), same)


def _header_type(header: P4Value) -> StructType:
    if isinstance(header, HeaderElement):
        element = header.stack.type.element
        assert isinstance(element, StructType)
        return element
    assert isinstance(header, HeaderValue | HeaderLiteral)
    return header.type


def validity(context: Context, value: P4Value, where: ast.Node) -> Expr:
    """value.isValid()."""
    if isinstance(value, HeaderValue):
        return Valid(value.name)
    if isinstance(value, HeaderLiteral):
        return build.TRUE if value.fields is not None else build.FALSE
    if isinstance(value, UnionValue):
        return UnionValid(value.name)
    if isinstance(value, HeaderElement):
        valid: Expr = build.FALSE
        for index, element in enumerate(value.stack.elements):
            assert isinstance(element, HeaderValue)
            at = build.binary("==", value.index, build.constant(index, value.index.type))
            valid = shallow(context, build.either(valid, build.both(at, Valid(element.name))), where)
        return valid
    if isinstance(value, StackCursor) and value.which == "last":
        position = LastIndex(value.stack.name, bits(32))
        return build.binary("<", position, build.constant(len(value.stack.elements), bits(32)))
    context.refuse("BMv2 does not know the validity of 'next' of a stack, and of headers in 'last' of unions", where)
