"""Checking of tables (specification, section 14.2)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.context import CheckContext, Enclosing
from weft.compiler.check.entries import check_entries
from weft.compiler.check.infer import constant, infer
from weft.compiler.check.table_actions import (
    action_arguments,
    check_action_reference,
    check_repeated_actions,
    depends_on_instance,
    has_note,
)
from weft.compiler.types import BOOL, ERROR, INTEGER, UNKNOWN, BitsType, EnumType, Type, VarbitType, strip_new
from weft.compiler.warnings.kinds import Kind
from weft.compiler.wording import choices

PROPERTIES = (
    "default_action",
    "size",
    "implementation",
    "counters",
    "meters",
    "support_timeout",
    "largest_priority_wins",
    "priority_delta",
)


def check_table(context: CheckContext, table: ast.TableDeclaration) -> None:
    """Everything in a table; its name is in scope afterwards."""
    if "actions" not in table.given:
        context.error(f"table '{table.name}' has no 'actions' property", table)
    key_types = [_key(context, key) for key in table.keys]
    # A key may apply a table, an argument may not: it is evaluated within the action.
    with context.within(Enclosing("table", table.name)):
        for reference in table.actions:
            check_action_reference(context, reference)
    check_repeated_actions(context, table)
    for name, entry in table.properties.items():
        if name == "default_action":
            _default_action(context, table, entry)
        elif name not in PROPERTIES:
            message = f"unknown table property '{name}' is ignored {choices(PROPERTIES)}"
            context.warning(message, entry, Kind.IGNORE_PROPERTY)
            infer(context, entry.expression)
        elif name == "size":
            _size(context, entry.expression)
        else:
            infer(context, entry.expression)
    if table.entries and not table.keys:
        context.error(f"table '{table.name}' has entries but no key", table)
    elif table.entries is not None:
        check_entries(context, table, table.entries, key_types)
    context.declare(table)


def _size(context: CheckContext, expression: ast.Expression) -> None:
    if infer(context, expression) is not UNKNOWN and not (expression.value is None and depends_on_instance(expression)):
        constant(context, expression, "a table's size")


def _key(context: CheckContext, key: ast.KeyElement) -> Type:
    type_ = infer(context, key.expression)
    if key.match_kind.name not in context.symbols.match_kinds:
        context.error(
            f"'{key.match_kind.name}' is not a match kind {choices(context.symbols.match_kinds)}",
            key.match_kind,
        )
    plain = strip_new(type_)
    if type_ is INTEGER:
        context.error("a key has a known width; 'int' has none", key.expression)
    elif not isinstance(plain, BitsType | EnumType | VarbitType) and plain not in (BOOL, ERROR, UNKNOWN):
        context.error(f"a key cannot be of type '{type_}'", key.expression)
    return type_


def _default_action(context: CheckContext, table: ast.TableDeclaration, entry: ast.TableProperty) -> None:
    reference = action_arguments(context, table, entry.expression, "default_action")
    if reference is not None and has_note(reference, "tableonly"):
        context.error("a @tableonly action cannot be the default action", entry.expression).note(
            "listed here", reference.span
        )
