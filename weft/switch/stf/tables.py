"""Statements about tables: add, setdefault, remove, and references to entries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from weft.switch.backend import ActionCall, MemberRef, SwitchBackend, TableAction, TableEntry, TableKey
from weft.switch.bmv2json import Action, Program, Table, TableType
from weft.switch.stf.errors import StfStatementError
from weft.switch.stf.keys import table_key
from weft.switch.stf.names import by_name, resolve
from weft.switch.stf.statements import ActionText, Add, Remove, SetDefault


@dataclass(frozen=True, slots=True)
class AddedEntry:
    """An entry that the script added: table, key and priority, and its id in the script."""

    table: str
    key: TableKey
    priority: int
    entry_id: str | None


class ScriptedTables:
    """The tables of a switch, accessed by a script.

    Tables with an action profile accept actions like others: each entry gets a separate member.
    """

    def __init__(self, backend: SwitchBackend, program: Program) -> None:
        self._backend = backend
        self._program = program
        self._entries: list[AddedEntry] = []
        self._member_count: Counter[str] = Counter()

    def add(self, statement: Add) -> None:
        """Insert an entry. Raises StfStatementError, BackendError."""
        table = resolve(self._program.tables, statement.table, "table")
        if statement.entry_id is not None and any(entry.entry_id == statement.entry_id for entry in self._entries):
            raise StfStatementError(f"the id '{statement.entry_id}' is given to an entry already")
        # A script's priorities start at 0, P4Runtime's at 1; the larger one wins in both.
        priority = 1 + (statement.priority or 0) if table.needs_priority else 0
        key = table_key(table, statement.key)
        action = self._table_action(table, statement.action)
        self._backend.table_insert(table.name, TableEntry(key, action, priority))
        self._entries.append(AddedEntry(table.name, key, priority, statement.entry_id))

    def set_default(self, statement: SetDefault) -> None:
        """Set a table's default action. Raises StfStatementError, BackendError."""
        table = resolve(self._program.tables, statement.table, "table")
        self._backend.table_set_default(table.name, self._table_action(table, statement.action))

    def remove(self, statement: Remove) -> None:
        """Delete one added entry, or all of them. Raises StfStatementError, BackendError."""
        entry_id = statement.entry_id
        removed = list(self._entries) if entry_id is None else [self.entry(entry_id)]
        for entry in removed:
            self._backend.table_delete(entry.table, entry.key, entry.priority)
            self._entries.remove(entry)

    def entry(self, entry_id: str) -> AddedEntry:
        """Return the entry with this id in the script. Raises StfStatementError if it does not exist."""
        ids = {entry.entry_id: entry for entry in self._entries if entry.entry_id is not None}
        if entry_id not in ids:
            known = ", ".join(sorted(ids)) or "no entry has one"
            raise StfStatementError(f"no entry has the id '{entry_id}' (ids: {known})")
        return ids[entry_id]

    def _table_action(self, table: Table, text: ActionText) -> TableAction:
        call = _action_call(table, text)
        if table.type is TableType.SIMPLE or table.action_profile is None:
            return call
        profile = table.action_profile
        self._member_count[profile] += 1
        self._backend.member_insert(profile, self._member_count[profile], call)
        return MemberRef(self._member_count[profile])


def _action_call(table: Table, text: ActionText) -> ActionCall:
    action = resolve({each.name: each for each in table.actions}, text.name, f"action of table '{table.name}':")
    names = [parameter.name for parameter in action.parameters]
    if len(text.arguments) > len(names):
        raise StfStatementError(f"action '{action.name}' takes {len(names)} arguments, not {len(text.arguments)}")
    values: dict[str, int] = {}
    for position, (given, value) in enumerate(text.arguments):
        name = names[position] if given is None else _parameter(action, given)
        if name in values:
            raise StfStatementError(f"parameter '{name}' of action '{action.name}' is given twice")
        values[name] = value
    missing = [name for name in names if name not in values]
    if missing:
        raise StfStatementError(f"action '{action.name}' also needs {', '.join(missing)}")
    return ActionCall(action.name, tuple(values[name] for name in names))


def _parameter(action: Action, name: str) -> str:
    names = by_name(parameter.name for parameter in action.parameters)
    return resolve(names, name, f"parameter of action '{action.name}':")
