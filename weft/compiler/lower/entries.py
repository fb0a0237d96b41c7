"""Entries that a table lists."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ast, keysets
from weft.compiler.ir import Entry, KeyField, Table
from weft.compiler.lower.actions import chosen_action
from weft.compiler.lower.context import Context
from weft.compiler.lower.priorities import entry_priorities
from weft.compiler.lower.table_keys import keyset_value


def lower_entries(context: Context, table: Table, declaration: ast.TableDeclaration) -> list[Entry]:
    """The entries of a table, with the priorities that BMv2 and the control plane give them."""
    assert declaration.entries is not None
    entries: list[Entry] = []
    matchable = [key for key in table.keys if key.match_kind != "selector"]
    priorities = entry_priorities(declaration, context.diagnostics)
    for entry, priority in zip(declaration.entries, priorities, strict=True):
        keyset = entry.keyset
        elements = keyset.elements if isinstance(keyset, ast.KeysetTuple | ast.ListExpression) else [keyset]
        if len(elements) == 1 and isinstance(elements[0], ast.DefaultExpression):
            keys: list[object] = [None] * len(matchable)
        else:
            keys = [keyset_value(context, element) for element in elements]
        _check_entry_key(context, matchable, keys, elements)
        action, arguments = chosen_action(
            context, declaration, context.control_plane.table_actions[table.name], entry.action
        )
        assert action is not None
        is_const = entry.is_const or declaration.entries_const
        entries.append(Entry(keys, action, arguments, priority.bmv2, priority.control, is_const, entry.span))
    _check_duplicates(context, matchable, entries)
    return entries


def _check_entry_key(
    context: Context, keys: list[KeyField], values: list[object], elements: Sequence[ast.Expression]
) -> None:
    """Each value has a form that its key's match kind takes (specification, section 14.2.1.4)."""
    for key, value, element in zip(keys, values, elements, strict=False):
        form = keysets.form(value)
        if form not in keysets.FORMS.get(key.match_kind, keysets.FORM_NAMES):
            name = keysets.FORM_NAMES[form]
            context.diagnostics.error(f"a key that is matched as {key.match_kind} takes no {name}", element.span)
        elif key.match_kind == "lpm" and not keysets.is_prefix(keysets.value_and_mask(value, key.width)[1], key.width):
            context.diagnostics.error(f"the mask is no prefix of the key's {key.width} bits", element.span)
        elif key.match_kind == "range" and keysets.crosses_zero(value):
            context.diagnostics.error(
                "BMv2 compares keys as unsigned numbers, so a range of them cannot cross 0",
                element.span,
            )


def _check_duplicates(context: Context, keys: list[KeyField], entries: list[Entry]) -> None:
    prioritised = any(key.match_kind in ("ternary", "range", "optional") for key in keys)
    seen: dict[object, Entry] = {}
    for entry in entries:
        values = zip(entry.keys, keys, strict=True)
        key = tuple(keysets.canonical(value, field.match_kind, field.width) for value, field in values)
        first = seen.setdefault((key, entry.priority if prioritised else 0), entry)
        if first is not entry:
            message = context.diagnostics.error("an earlier entry has the same key", entry.span)
            message.note("the earlier entry is here", first.span)
