"""The names in a P4 program's P4Info, full or short: lookup, and checks that entities' names exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import finsy
from finsy.proto import p4i

from weft.controller.entities import Entity
from weft.controller.errors import SettingError
from weft.hints import did_you_mean
from weft.quantities.units import shown

MOST_HINTED = 80
"""Characters of an unknown name that are compared with known names."""
_Named = TypeVar("_Named")


class ByName(Mapping[str, _Named]):
    """Objects of a program by full name and by unique short name; `what` names their kind in errors."""

    def __init__(self, what: str, objects: Mapping[str, _Named], short: Mapping[str, str]) -> None:
        self.what = what
        self._objects = objects
        self._full = {name: full for full, name in short.items()} | {full: full for full in objects}

    def __getitem__(self, name: str) -> _Named:
        return self._objects[self._full[name]]

    def __iter__(self) -> Any:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, name: object) -> bool:
        return name in self._full

    def named(self, name: object, whose: str = "") -> _Named:
        """Return the object with this name. Raises SettingError, which lists valid names."""
        if isinstance(name, str) and name in self._full:
            return self[name]
        if not self._objects:
            raise SettingError(f"unknown {self.what} {shown(name)}: {whose or 'the program'} has none")
        text = str(name)[:MOST_HINTED]
        hint = did_you_mean(text, self._full)
        if hint.startswith("valid"):
            hint = did_you_mean(text, self._objects)  # each once
        raise SettingError(f"unknown {self.what} {shown(name)}{f' of {whose}' if whose else ''}; {hint}")


@dataclass(frozen=True)
class ActionNames:
    """An action and its parameters."""

    name: str
    parameters: ByName[p4i.Action.Param]


@dataclass(frozen=True)
class TableNames:
    """A table, the fields of its key, and the actions allowed in entries and in the default entry."""

    name: str
    info: p4i.Table
    fields: ByName[p4i.MatchField]
    actions: ByName[ActionNames]
    default_actions: ByName[ActionNames]
    idle_timeout: bool = False
    of_profile: bool = False
    meter: p4i.DirectMeter | None = None


@dataclass(frozen=True)
class ProgramNames:
    """The objects of a program that controllers can use."""

    tables: ByName[TableNames]
    actions: ByName[ActionNames]
    profiles: ByName[p4i.ActionProfile] = field(compare=False)
    registers: ByName[p4i.Register] = field(compare=False)
    counters: ByName[p4i.Counter] = field(compare=False)
    meters: ByName[p4i.Meter] = field(compare=False)
    value_sets: ByName[p4i.ValueSet] = field(compare=False)

    @classmethod
    def of(cls, info: p4i.P4Info) -> ProgramNames:
        """Return the names in P4Info."""
        actions = {each.preamble.id: _action(each) for each in info.actions}
        meters = {each.direct_table_id: each for each in info.direct_meters}
        return cls(
            _by_name("table", ((each.preamble, _table(each, actions, meters)) for each in info.tables)),
            _by_name("action", ((each.preamble, actions[each.preamble.id]) for each in info.actions)),
            _by_name("action profile", ((each.preamble, each) for each in info.action_profiles)),
            _by_name("register", ((each.preamble, each) for each in info.registers)),
            _by_name("counter", ((each.preamble, each) for each in info.counters)),
            _by_name("meter", ((each.preamble, each) for each in info.meters)),
            _by_name("value set", ((each.preamble, each) for each in info.value_sets)),
        )

    def profile_of_table(self, table: str) -> str:
        """Return the name of a table's action profile. KeyError: it has none."""
        number = self.tables[table].info.implementation_id
        names = {each.preamble.id: name for name, each in self.profiles.items()}
        return names[number]

    def actions_of_profile(self, profile: str) -> ByName[ActionNames]:
        """Return the actions allowed in a profile's members: the entry actions of its tables."""
        tables = self.profiles[profile].table_ids
        of_tables = [each.actions for each in self.tables.values() if each.info.preamble.id in tables]
        return _actions_by_name([action for each in of_tables for action in each.values()])

    def lacking(self, entity: Entity) -> str:
        """Return which name of an entity the program lacks, such as `no table acl`; empty if none."""
        if isinstance(entity, finsy.P4TableEntry):
            return self._lacking_of_entry(entity)
        if isinstance(entity, finsy.P4ActionProfileMember | finsy.P4ActionProfileGroup):
            if entity.action_profile_id not in self.profiles:
                return f"no action selector {entity.action_profile_id}"
            if isinstance(entity, finsy.P4ActionProfileMember) and entity.action is not None:
                return _lacking_of_action(self.actions, entity.action)
        return ""

    def _lacking_of_entry(self, entry: finsy.P4TableEntry) -> str:
        if entry.table_id not in self.tables:
            return f"no table {entry.table_id}"
        table = self.tables[entry.table_id]
        for name in entry.match or ():
            if name not in table.fields:
                return f"no key {name} of table {entry.table_id}"
        if isinstance(entry.action, finsy.P4TableAction):
            if missing := _lacking_of_action(
                table.default_actions if entry.is_default_action else table.actions, entry.action
            ):
                return f"{missing} of table {entry.table_id}"
        elif isinstance(entry.action, finsy.P4IndirectAction) and not table.of_profile:
            return f"no action selector of table {entry.table_id}"
        return ""


def _lacking_of_action(actions: ByName[ActionNames], wanted: finsy.P4TableAction) -> str:
    if wanted.name not in actions:
        return f"no action {wanted.name}"
    parameters = actions[wanted.name].parameters
    different = [name for name in wanted.args if name not in parameters]
    if different or len(wanted.args) != len(parameters):
        missing = ", ".join(different) or "the same parameters"
        return f"no action {wanted.name} with {missing}"
    return ""


def _by_name(what: str, objects: Iterable[tuple[p4i.Preamble, _Named]]) -> ByName[_Named]:
    found = list(objects)
    return ByName(
        what,
        {preamble.name: each for preamble, each in found},
        {preamble.name: preamble.alias for preamble, _ in found},
    )


def _action(info: p4i.Action) -> ActionNames:
    parameters = {each.name: each for each in info.params}
    return ActionNames(info.preamble.name, ByName("parameter", parameters, {}))


def _table(info: p4i.Table, actions: Mapping[int, ActionNames], meters: Mapping[int, p4i.DirectMeter]) -> TableNames:
    fields = {each.name: each for each in info.match_fields}
    of_entries, of_default = (
        [actions[each.id] for each in info.action_refs if each.scope != other]
        for other in (p4i.ActionRef.DEFAULT_ONLY, p4i.ActionRef.TABLE_ONLY)
    )
    return TableNames(
        info.preamble.name,
        info,
        ByName("key", fields, _last_parts(fields)),
        _actions_by_name(of_entries),
        _actions_by_name(of_default),
        idle_timeout=info.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
        of_profile=bool(info.implementation_id),
        meter=meters.get(info.preamble.id),
    )


def value_set_fields(info: p4i.ValueSet) -> ByName[p4i.MatchField]:
    """Return the match fields of a value set's members; a set of plain values has one unnamed field."""
    return ByName("field", {each.name: each for each in info.match}, {})


def _actions_by_name(actions: list[ActionNames]) -> ByName[ActionNames]:
    by_name = {each.name: each for each in actions}
    return ByName("action", by_name, _last_parts(by_name))


def _last_parts(names: Collection[str]) -> dict[str, str]:
    """Return the last part of each name, if it is unique."""
    last = [name.rpartition(".")[2] for name in names]
    return {name: part for name, part in zip(names, last, strict=True) if last.count(part) == 1}
