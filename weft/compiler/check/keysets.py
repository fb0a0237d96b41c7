"""Checking of key sets (specification, section 8.15)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.coerce import coerce
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.types import INTEGER, UNKNOWN, BitsType, EnumType, NewType, SetType, Type, strip_new
from weft.compiler.warnings.walk import walk


def check_keyset(context: CheckContext, keyset: ast.Expression, types: list[Type], what: str) -> None:
    """A key set against the types it must match."""
    elements = keyset.elements if isinstance(keyset, ast.KeysetTuple | ast.ListExpression) else [keyset]
    if len(elements) == 1 and isinstance(elements[0], ast.DefaultExpression):
        elements[0].type = types[0] if types else UNKNOWN
        return
    if len(elements) == 1 and len(types) > 1 and isinstance(keyset, ast.Name):
        # A value set of a struct or tuple matches all keys at once.
        infer(context, keyset)
        return
    if len(elements) != len(types):
        context.error(f"{what} needs {len(types)} values, {len(elements)} given", keyset)
        return
    for element, type_ in zip(elements, types, strict=True):
        if isinstance(element, ast.DefaultExpression):
            element.type = type_
            continue
        if any(isinstance(part, ast.Call) and part.callee is not None for part in walk(element)):
            _no_calls(context, element, what)
        if type_ is UNKNOWN:
            infer(context, element)
            continue
        found = infer(context, element, SetType(type_))
        if isinstance(found, SetType):
            _check_set(context, element, found, type_)
        else:
            coerce(context, element, type_, what)


def _check_set(context: CheckContext, element: ast.Expression, found: SetType, wanted: Type) -> None:
    plain = strip_new(wanted)
    if isinstance(element, ast.Binary) and found.element is INTEGER:
        coerce(context, element.left, plain)
        coerce(context, element.right, plain)
        element.type = SetType(plain)
    elif found.element not in (wanted, plain, UNKNOWN) and not (
        isinstance(wanted, EnumType) and found.element == wanted.underlying
    ):
        width_fits = isinstance(element, ast.Name)
        if not width_fits or isinstance(found.element, BitsType | NewType):
            context.error(f"expected values of '{wanted}', found '{found.element}'", element)


def _no_calls(context: CheckContext, element: ast.Expression, what: str) -> None:
    infer(context, element)
    if element.value is None or any(
        isinstance(part, ast.Call) and part.kind in ("function", "method") for part in walk(element)
    ):
        context.error(f"{what} cannot call anything: it must be known at compile time", element)
