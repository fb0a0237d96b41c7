"""What all parts of the native switch share: the running program and its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.engine import _core
from weft.switch.backend import EntryNotFoundError, NotReadyError, TableKey
from weft.switch.checks import named
from weft.switch.live_replicas import Failover
from weft.switch.lowering import CompiledProgram
from weft.switch.native.idle import IdleWatch
from weft.switch.native.tables import NativeTable
from weft.switch.native.trace import NativeTrace


class NativeSwitchBase:
    """The engine's switch, and what the program that it runs is made of."""

    def __init__(
        self,
        engine: Any = None,
        name: str = "switch",
        *,
        cpu_port: int = 510,
        drop_port: int = 511,
        depth_unit: str = "cells",
        time_unit: str = "ns",
    ) -> None:
        self.engine = engine if engine is not None else _core.Engine()
        self.name = name
        self.native = _core.Switch(
            self.engine,
            name=name,
            cpu_port=cpu_port,
            drop_port=drop_port,
            depth_unit=depth_unit,
            time_unit=time_unit,
        )
        self._compiled: CompiledProgram | None = None
        self._tables: dict[str, NativeTable] = {}
        self._profile_index: dict[str, int] = {}
        self._idle = IdleWatch()
        self._failover = Failover()
        self.trace = NativeTrace(self.engine, self.native, name)

    def _loaded(self) -> CompiledProgram:
        if self._compiled is None:
            raise NotReadyError(f"switch '{self.name}' has no forwarding pipeline yet")
        return self._compiled

    def _table(self, name: str) -> NativeTable:
        found = self._tables.get(name)
        if found is None:
            self._loaded()
            return named(self._tables, name, "table")
        return found

    def _with_entry(
        self, function: Callable[..., Any], table: str, key: TableKey | None, priority: int, *arguments: Any
    ) -> Any:
        target = self._table(table)
        encoded = None if key is None else target.encode_key(key, priority)
        try:
            return function(target.index, encoded, *arguments)
        except KeyError:
            raise no_entry(table) from None


def no_entry(table: str) -> EntryNotFoundError:
    """What to raise where a table has no such entry."""
    return EntryNotFoundError(f"table {table!r} has no entry with this key and priority")
