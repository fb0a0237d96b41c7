"""Implicit conversions (specification, section 8.11.2)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.fold import bounds, wrap
from weft.compiler.types import (
    DEFAULT,
    INTEGER,
    INVALID_HEADER,
    STRING,
    UNKNOWN,
    AnonymousStructType,
    BitsType,
    EnumType,
    ListType,
    NewType,
    NominalType,
    SetType,
    StackType,
    StructType,
    TupleType,
    Type,
    TypeVariable,
    is_header,
    is_union,
    strip_new,
)
from weft.compiler.warnings.kinds import Kind


def check_expression(context: CheckContext, expression: ast.Expression, target: Type, what: str = "") -> bool:
    """Infer an expression and convert it to `target`."""
    infer(context, expression, target)
    return coerce(context, expression, target, what)


def coerce(context: CheckContext, expression: ast.Expression, target: Type, what: str = "") -> bool:
    """Convert `expression` (already inferred) to `target` in place; report and return False if impossible."""
    actual = expression.type
    # An error has been reported where the type became unknown; another here would only follow from it.
    if actual is UNKNOWN or target is UNKNOWN or actual is None or actual == target:
        return True
    if actual is INTEGER:
        return _coerce_integer(context, expression, target, what)
    if isinstance(expression, ast.Ternary):
        first = coerce(context, expression.first, target, what)
        done = coerce(context, expression.second, target, what) and first
        expression.type = target if done else UNKNOWN
        return done
    if isinstance(expression, ast.ListExpression):
        return _coerce_list(context, expression, target, what)
    if isinstance(expression, ast.StructExpression) and isinstance(actual, AnonymousStructType):
        return _coerce_struct(context, expression, target, what)
    if actual is INVALID_HEADER and (is_header(target) or is_union(target)):
        expression.type = target
        return True
    if actual is DEFAULT:
        expression.type = target
        return True
    if isinstance(actual, EnumType) and actual.underlying is not None and actual.underlying == target:
        return True
    if isinstance(actual, TupleType) and isinstance(target, TupleType | ListType):
        wanted = element_types(target, len(actual.elements))
        if wanted is not None and tuple(wanted) == actual.elements:
            return True
    if isinstance(target, SetType) and not isinstance(actual, SetType):
        return coerce(context, expression, target.element, what)
    if _known_as_integer(expression, target) or matches(actual, target):
        return True
    return _mismatch(context, expression, target, what)


def element_types(target: Type, count: int, rest: bool = False) -> list[Type] | None:
    """The types a list expression's elements need for `target`, or None when the shapes disagree."""
    wanted: list[Type]
    if isinstance(target, TupleType):
        wanted = list(target.elements)
    elif isinstance(target, StructType) and target.kind != "header_union":
        wanted = list(target.fields.values())
    elif isinstance(target, ListType):
        return [target.element] * count
    elif isinstance(target, StackType):
        fits = count == target.size or (rest and count < target.size)
        return [target.element] * count if fits else None
    elif target is STRING:
        return None
    else:
        return None
    if len(wanted) == count or (rest and count <= len(wanted)):
        return wanted
    return None


def _mismatch(context: CheckContext, expression: ast.Expression, target: Type, what: str) -> bool:
    prefix = f"{what}: " if what else ""
    diagnostic = context.error(f"{prefix}expected '{target}', found '{expression.type}'", expression)
    actual = expression.type
    new = isinstance(actual, NewType) or isinstance(target, NewType)
    if (isinstance(actual, BitsType) and isinstance(target, BitsType)) or (
        new and actual is not None and strip_new(actual) == strip_new(target)
    ):
        diagnostic.note(f"an explicit cast is needed: ({target})…", None)
    expression.type = UNKNOWN
    return False


def _known_as_integer(expression: ast.Expression, target: Type) -> bool:
    """A sized constant where an `int` is wanted."""
    if target is INTEGER and isinstance(expression.type, BitsType) and expression.value is not None:
        expression.type = INTEGER
        return True
    return False


def _coerce_integer(context: CheckContext, expression: ast.Expression, target: Type, what: str) -> bool:
    if isinstance(target, SetType):
        return _coerce_integer(context, expression, target.element, what)
    # A number without a width becomes a value of a `type`, too, as for p4c; one with a width needs a cast.
    plain = strip_new(target)
    if not isinstance(plain, BitsType):
        return _mismatch(context, expression, target, what)
    if isinstance(expression, ast.Ternary):
        _coerce_integer(context, expression.first, target, what)
        _coerce_integer(context, expression.second, target, what)
    expression.type = target
    if expression.value is not None:
        low, high = bounds(plain)
        if not low <= expression.value <= high and not (
            plain.signed is False and -(high + 1) // 2 <= expression.value < 0
        ):
            context.warning(
                f"the value {expression.value} does not fit '{target}' and is truncated to "
                f"{wrap(expression.value, plain)}",
                expression,
                Kind.MISMATCH,
            )
        expression.value = wrap(expression.value, plain)
    return True


def _coerce_list(context: CheckContext, expression: ast.ListExpression, target: Type, what: str) -> bool:
    if isinstance(target, TypeVariable):
        return _mismatch(context, expression, target, what)
    wanted = element_types(target, len(expression.elements), expression.rest)
    if wanted is None:
        return _mismatch(context, expression, target, what)
    done = True
    for element, type_ in zip(expression.elements, wanted, strict=False):
        done = coerce(context, element, type_, what) and done
    expression.type = target
    if expression.value is not None:
        expression.value = _named([element.value for element in expression.elements], target)
    return done


def _coerce_struct(context: CheckContext, expression: ast.StructExpression, target: Type, what: str) -> bool:
    if not isinstance(target, StructType) or target.kind == "header_union":
        return _mismatch(context, expression, target, what)
    fields = target.fields
    done = True
    given: dict[str, ast.NamedElement] = {}
    for element in expression.elements:
        if element.name not in fields:
            context.error(f"'{target}' has no field '{element.name}'", element)
            done = False
            continue
        given[element.name] = element
        done = coerce(context, element.expression, fields[element.name], f"field '{element.name}'") and done
    missing = [name for name in fields if name not in given]
    if missing and not expression.rest:
        context.error(f"no value for field '{missing[0]}' of '{target}'", expression)
        done = False
    expression.type = target
    if expression.value is not None:
        values = {name: element.expression.value for name, element in given.items()}
        expression.value = None if missing or None in values.values() else values
    return done


def _named(values: list[object], target: Type) -> object:
    """A list's known values, by field if the target is a struct; None when some are left to `...`."""
    if isinstance(target, StructType):
        return dict(zip(target.fields, values, strict=True)) if len(values) == len(target.fields) else None
    if isinstance(target, TupleType) and len(values) != len(target.elements):
        return None
    return values


def matches(left: Type, right: Type) -> bool:
    """Equality in which an unknown type argument stands for any."""
    if left is UNKNOWN or right is UNKNOWN or left == right:
        return True
    if isinstance(left, NominalType) and isinstance(right, NominalType):
        return left.declaration is right.declaration and all(map(matches, left.arguments, right.arguments))
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        return len(left.elements) == len(right.elements) and all(map(matches, left.elements, right.elements))
    return False
