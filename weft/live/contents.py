"""Reads a switch's table entries, counters and registers over P4Runtime, on request.

The switch is asked for its program each time, because in some labs users' controllers load their own.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from weft.clocks.lab import Lab
from weft.controller.arrays import ProgramArrays, read_counter, read_direct_counter, read_register
from weft.controller.errors import SettingError
from weft.controller.lab import Lab as Switches
from weft.controller.output import text
from weft.controller.readers import for_each_switch
from weft.controller.session import SwitchSession
from weft.controller.views import table_rows
from weft.error_translation import raised_as_weft_errors

MOST_ROWS = 500
_Result = TypeVar("_Result")
_Rows = tuple[list[str], list[list[str]]]


class SwitchReader(Protocol):
    """Runs an action on a read-only session."""

    def __call__(self, switch: str, action: Callable[[SwitchSession], Awaitable[_Result]]) -> _Result:
        """Return the action's result for a switch. Raises SettingError if the switch is unknown."""


def reader_of(lab: Lab) -> SwitchReader:
    """Return a reader for a lab's switches on its controller's event loop; gRPC supports one loop per process."""

    def read(switch: str, action: Callable[[SwitchSession], Awaitable[_Result]]) -> _Result:
        switches = Switches(dict(lab.controller.targets))
        (found,) = lab.controller.call(for_each_switch(switches, switches.select((switch,)), action))
        return found

    return read


class Contents:
    """Reads switches, one request at a time."""

    def __init__(self, read: SwitchReader) -> None:
        self._read_switch = read
        self._lock = threading.Lock()

    def names(self, switch: str) -> dict[str, list[str]]:
        """Return the names of the program's tables, counters and registers, by kind. Raises WeftError."""
        return self._read(switch, _names)

    def rows(self, switch: str, kind: str, name: str) -> dict[str, Any]:
        """Return the columns, at most `MOST_ROWS` rows, and the number of further rows of a table, counter or register.

        Cells with value 0 are omitted. Raises WeftError.
        """
        readers = {"tables": _entries, "counters": _counted, "registers": _registers}

        async def read(session: SwitchSession) -> _Rows:
            if kind not in readers:
                raise SettingError(f"unknown kind {kind!r}", valid=readers)
            return await readers[kind](session, name)

        columns, rows = self._read(switch, read)
        return {"columns": columns, "rows": rows[:MOST_ROWS], "more": max(0, len(rows) - MOST_ROWS)}

    def _read(self, switch: str, action: Callable[[SwitchSession], Awaitable[_Result]]) -> _Result:
        # One reader at a time: each reads whole tables over P4Runtime, and browsers may repeat a request before the
        # answer.
        with self._lock, raised_as_weft_errors():
            return self._read_switch(switch, action)


async def _names(session: SwitchSession) -> dict[str, list[str]]:
    arrays = ProgramArrays.of(session.schema.p4info)
    return {
        "tables": [each.alias for each in session.schema.tables],
        "counters": [*arrays.counters, *arrays.direct_counters],
        "registers": [*arrays.registers],
    }


async def _entries(session: SwitchSession, name: str) -> _Rows:
    rows = await table_rows(session, name)
    keys: dict[str, None] = {}
    for row in rows:
        keys.update(dict.fromkeys(row["match"]))
    cells = [[*(text(_or_any(row["match"], key)) for key in keys), row["action"], *_tail(row)] for row in rows]
    return [*keys, "action", "priority", "packets"], cells


def _or_any(match: Mapping[str, Any], key: str) -> Any:
    return match.get(key, "any")


def _tail(row: Mapping[str, Any]) -> list[str]:
    return [text(row["priority"] or None), text(row["packets"])]


async def _counted(session: SwitchSession, name: str) -> _Rows:
    arrays = ProgramArrays.of(session.schema.p4info)
    if name in arrays.direct_counters:
        entries = await read_direct_counter(session, name)
        return ["entry", "packets", "bytes"], [
            [each.entry, str(each.count.packets), str(each.count.bytes)] for each in entries
        ]
    cells = await read_counter(session, name)
    return ["index", "packets", "bytes"], [
        [str(index), str(count.packets), str(count.bytes)]
        for index, count in sorted(cells.items())
        if count.packets or count.bytes
    ]


async def _registers(session: SwitchSession, name: str) -> _Rows:
    cells = await read_register(session, name)
    return ["index", "value"], [[str(index), str(value)] for index, value in sorted(cells.items()) if value]
