"""The program that a native switch runs, and its objects by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from weft.switch.backend import EntryNotFoundError, NotReadyError, TableKey
from weft.switch.backend.checks import named, profile_actions
from weft.switch.bmv2json import Program
from weft.switch.drop_sites import DropSite, drop_sites
from weft.switch.lowering import CompiledProgram
from weft.switch.native.bindings import CalledActions
from weft.switch.native.tables import NativeTable, tables_of


class RunningProgram:
    """The running program's objects by name, for all parts of a switch. NotReadyError before a program is loaded."""

    def __init__(self, switch_name: str) -> None:
        self._switch_name = switch_name
        self._compiled: CompiledProgram | None = None
        self.tables: dict[str, NativeTable] = {}
        self.member_actions: dict[str, CalledActions] = {}
        self._profile_indices: dict[str, int] = {}

    def replace(self, compiled: CompiledProgram, preinitialized: frozenset[str]) -> None:
        """Switch to another program; tables named `preinitialized` may change although the program lists entries."""
        self._compiled = compiled
        self.__dict__.pop("drop_sites", None)
        self.tables = tables_of(compiled.program, preinitialized)
        self._profile_indices = {name: index for index, name in enumerate(compiled.program.action_profiles)}
        self.member_actions = {
            name: CalledActions(profile_actions(compiled.program, name)) for name in self._profile_indices
        }

    @property
    def is_loaded(self) -> bool:
        """Whether a program is loaded."""
        return self._compiled is not None

    def require(self) -> None:
        """Raise NotReadyError without a program."""
        if self._compiled is None:
            raise NotReadyError(f"switch '{self._switch_name}' has no forwarding pipeline yet")

    @property
    def compiled(self) -> CompiledProgram:
        """The program with its machine code."""
        self.require()
        assert self._compiled is not None
        return self._compiled

    @property
    def program(self) -> Program:
        """The program itself."""
        return self.compiled.program

    @cached_property
    def drop_sites(self) -> tuple[DropSite, ...]:
        """Sites that may mark packets to be dropped, indexed by number minus 1."""
        return tuple(drop_sites(self.program).values())

    def table(self, name: str) -> NativeTable:
        """Return a table. Raises InvalidRequestError for unknown names."""
        found = self.tables.get(name)
        if found is None:
            self.require()
            return named(self.tables, name, "table")
        return found

    def profile_index(self, name: str) -> int:
        """Return the number of an action profile. Raises InvalidRequestError for unknown names."""
        named(self.program.action_profiles, name, "action profile")
        return self._profile_indices[name]

    @property
    def profile_indices(self) -> range:
        """The numbers of all action profiles."""
        return range(len(self._profile_indices))

    def on_entry(
        self, function: Callable[..., Any], table: str, key: TableKey | None, priority: int, *arguments: Any
    ) -> Any:
        """Return the result of C++'s `function` for an entry (None: the default action). EntryNotFoundError."""
        target = self.table(table)
        encoded = None if key is None else target.encode_key(key, priority)
        try:
            return function(target.index, encoded, *arguments)
        except KeyError:
            raise no_entry(table) from None


def no_entry(table: str) -> EntryNotFoundError:
    """Return the error for a missing entry."""
    return EntryNotFoundError(f"table {table!r} has no entry with this key and priority")
