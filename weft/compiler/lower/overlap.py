"""Which storage a value touches: decides whether an argument can be passed by reference."""

from __future__ import annotations

from weft.compiler import ir
from weft.compiler.lower import values

# A place is (instance, field); field None stands for the whole instance.
Places = set[tuple[str, str | None]]


def places(value: values.P4Value | None) -> Places:
    """Every field or instance a value reads or, as a target, writes."""
    found: Places = set()
    _collect(value, found)
    return found


def _collect(value: values.P4Value | None, found: Places) -> None:
    if isinstance(value, ir.Expr):
        for expression in ir.walk(value):
            if isinstance(expression, ir.FieldRef):
                found.add((expression.header, expression.field))
            elif isinstance(expression, ir.Valid):
                found.add((expression.header, None))
            elif isinstance(expression, ir.LastField | ir.ElementField | ir.LastIndex | ir.UnionLastField):
                found.add((expression.stack, None))
            elif isinstance(expression, ir.UnionValid):
                found.add((expression.union, None))
    elif isinstance(value, values.StructValue):
        for part in value.fields.values():
            _collect(part, found)
    elif isinstance(value, values.HeaderValue):
        found.add((value.name, None))
        if value.union is not None:
            found.add((value.union.name, None))
    elif isinstance(value, values.HeaderLiteral):
        for part in (value.fields or {}).values():
            _collect(part, found)
    elif isinstance(value, values.UnionValue):
        found.add((value.name, None))
        for member in value.members.values():
            found.add((member.name, None))
    elif isinstance(value, values.StackValue):
        found.add((value.name, None))
        for element in value.elements:
            _collect(element, found)
    elif isinstance(value, values.HeaderElement):
        _collect(value.stack, found)
        _collect(value.index, found)
    elif isinstance(value, values.StackCursor):
        _collect(value.stack, found)
    elif isinstance(value, values.UnionCursor):
        _collect(value.cursor, found)
    elif isinstance(value, values.SliceTarget):
        _collect(value.target, found)
    elif isinstance(value, values.PlusSliceTarget):
        _collect(value.target, found)
        _collect(value.low, found)


def overlap(left: Places, right: Places) -> bool:
    """Whether two sets of places have storage in common."""
    if left & right:
        return True
    whole_left = {name for name, field in left if field is None}
    whole_right = {name for name, field in right if field is None}
    return any(name in whole_right for name, _ in left) or any(name in whole_left for name, _ in right)


def same_value(left: values.P4Value, right: values.P4Value) -> bool:
    """Whether two values are the same storage, or the same expression of it."""
    if left is right:
        return True
    if isinstance(left, ir.Expr) and isinstance(right, ir.Expr):
        return bool(left == right)
    if isinstance(left, values.StructValue) and isinstance(right, values.StructValue):
        return list(left.fields) == list(right.fields) and all(
            same_value(left.fields[name], right.fields[name]) for name in left.fields
        )
    named = values.HeaderValue | values.StackValue | values.UnionValue
    return (
        isinstance(left, named) and isinstance(right, named) and type(left) is type(right) and left.name == right.name
    )
