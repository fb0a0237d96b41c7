"""Checking of table entries (specification, section 14.2.1.4)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import constant
from weft.compiler.check.keysets import check_keyset
from weft.compiler.check.table_actions import action_arguments, has_note
from weft.compiler.types import Type

# Match kinds under which entries can overlap.
_PRIORITIZED = ("ternary", "range", "optional")


def check_entries(
    context: CheckContext, table: ast.TableDeclaration, entries: list[ast.TableEntry], key_types: list[Type]
) -> None:
    """The entries written in a table."""
    for entry in entries:
        _entry(context, table, entry, key_types)
    kinds = [key.match_kind.name for key in table.keys]
    given = [entry for entry in entries if entry.priority is not None]
    if given and not any(kind in _PRIORITIZED for kind in kinds):
        context.error("the entries of a table without ternary, range or optional keys have no priorities", given[0])


def _entry(context: CheckContext, table: ast.TableDeclaration, entry: ast.TableEntry, key_types: list[Type]) -> None:
    check_keyset(context, entry.keyset, key_types, "an entry")
    reference = action_arguments(context, table, entry.action, "an entry")
    if reference is not None and has_note(reference, "defaultonly"):
        context.error("an entry cannot use a @defaultonly action", entry.action).note("listed here", reference.span)
    if entry.priority is not None:
        constant(context, entry.priority, "a priority")
