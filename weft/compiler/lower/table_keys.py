"""Keys of tables and key sets of entries."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Const, Expr, FieldRef, KeyField, Valid, bit_width
from weft.compiler.lower.assign import assign
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate, evaluate_bound, evaluate_scalar
from weft.compiler.lower.key_names import key_name
from weft.compiler.lower.storage import matchable
from weft.compiler.subexpressions import walk

_CALLS_WITH_EFFECTS = ("function", "method", "table")


def lower_key(
    context: Context, key: ast.KeyElement, copies: list[tuple[FieldRef, ast.Expression]], *, copied: bool
) -> KeyField:
    """A key; `copied`: through a variable, even if BMv2 could match the field itself."""
    expression = key.expression
    name = next((text for entry in key.annotations if entry.name == "name" for text in entry.strings()), None)
    name = name or key_name(expression)
    if name is None:
        name = "key"
        context.diagnostics.error("this key needs a @name for the control plane", expression.span)
    with context.collecting() as steps:
        value, mask = evaluate_scalar(context, expression), None
    context.out += steps
    # What is computed in steps must be so wherever the table is applied.
    copied = copied or bool(steps)
    if not copied:
        # Looked at once more, which does no harm: nothing in it has an effect.
        value, mask = _field_of_key(context, expression, value)
    if copied or not isinstance(value, FieldRef | Valid):
        copy = context.scalar_temporary(matchable(value.type), "key")
        assign(context, copy, value, expression.span)
        copies.append((copy, expression))
        value, mask = copy, None
    return KeyField(key.match_kind.name, value, mask, name, bit_width(value.type))


def _field_of_key(context: Context, expression: ast.Expression, value: Expr) -> tuple[Expr, int | None]:
    """The field and the mask that BMv2 can match by itself; else the value as it is."""
    if isinstance(expression, ast.Slice) and not expression.plus:
        base = evaluate(context, expression.base)
        if isinstance(base, FieldRef):
            high, low = evaluate_bound(context, expression.high), evaluate_bound(context, expression.low)
            if low == 0 and high - low + 1 == bit_width(base.type):
                value = base
    if isinstance(expression, ast.Binary) and expression.operator == "&":
        mask, value = _masked(context, expression, value)
        return value, mask
    return value, None


def _masked(context: Context, expression: ast.Binary, value: Expr) -> tuple[int | None, Expr]:
    """`field & constant` is BMv2's masked key."""
    left, right = evaluate_scalar(context, expression.left), evaluate_scalar(context, expression.right)
    if isinstance(right, Const) and isinstance(left, FieldRef):
        return int(right.value), left
    if isinstance(left, Const) and isinstance(right, FieldRef):
        return int(left.value), right
    return None, value


def check_prefixes(context: Context, keys: list[KeyField], declaration: ast.TableDeclaration) -> None:
    """BMv2 matches one lpm key a table, unless another key is matched by priority."""
    kinds = [key.match_kind for key in keys]
    if kinds.count("lpm") > 1 and not {"ternary", "range", "optional"} & set(kinds):
        second = [key for key in declaration.keys if key.match_kind.name == "lpm"][1]
        context.diagnostics.error("BMv2 matches one lpm key a table", second.span)


def has_effects(expression: ast.Expression) -> bool:
    """Whether evaluating an expression may change something."""
    return any(isinstance(part, ast.Call) and part.kind in _CALLS_WITH_EFFECTS for part in walk(expression))


def keyset_value(context: Context, element: ast.Expression) -> object:
    """None for any value, an int, ("mask", value, mask) or ("range", low, high)."""
    if isinstance(element, ast.DefaultExpression):
        return None
    if isinstance(element, ast.Binary) and element.operator in ("&&&", ".."):
        left, right = evaluate(context, element.left), evaluate(context, element.right)
        if not isinstance(left, Const) or not isinstance(right, Const):
            context.refuse("a key set must be known at compile time", element)
        return ("mask" if element.operator == "&&&" else "range", int(left.value), int(right.value))
    value = evaluate(context, element)
    if not isinstance(value, Const):
        context.refuse("a key set must be known at compile time", element)
    return int(value.value)
