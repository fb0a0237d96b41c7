"""Registers, counters, meters and value sets of a switch, by names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import finsy

from weft.clocks.user_controller.switch_access import SwitchAccess
from weft.controller import arrays
from weft.controller.counters import Count
from weft.controller.runtime_entries import runtime_entries


class ArrayMethods(SwitchAccess):
    """A switch's counters, meters and registers. An index of None means all cells of an array."""

    def read_register(self, name: str, index: int) -> int:
        """Return a register's cell."""
        return self._ask(lambda: arrays.read_register(self._session, name, index), f"read {name}")[index]

    def read_registers(self, name: str) -> list[int]:
        """Return all cells of a register."""
        cells = self._ask(lambda: arrays.read_register(self._session, name), f"read {name}")
        return [cells[index] for index in sorted(cells)]

    def write_register(self, name: str, index: int | None, value: int) -> None:
        """Set a register's cell."""
        self._write_cell("register_entries", {"register": name, "index": index, "value": value})

    def read_counter(self, name: str, index: int) -> Count:
        """Return the packets and bytes that a counter's cell has counted."""
        return self._ask(lambda: arrays.read_counter(self._session, name, index), f"read {name}")[index]

    def read_counters(self, name: str) -> list[Count]:
        """Return what all cells of a counter have counted."""
        cells = self._ask(lambda: arrays.read_counter(self._session, name), f"read {name}")
        return [cells[index] for index in sorted(cells)]

    def reset_counter(self, name: str, index: int | None = None) -> None:
        """Set a counter's cell to 0."""
        self._write_cell("counter_entries", {"counter": name, "index": index})

    def read_meter(self, name: str, index: int) -> dict[str, int] | None:
        """Return a meter's rates per second and bursts, in its unit; None lets all packets be green."""

        async def read() -> dict[str, int] | None:
            meter = self._names.meters.named(name).preamble.name
            (cell,) = await self._session.read([finsy.P4MeterEntry(meter, index=index)])
            rates = cell.config
            if rates is None:
                return None
            return {key: getattr(rates, key) for key in ("cir", "cburst", "pir", "pburst")}

        return self._ask(read, f"read {name}")

    def write_meter(self, name: str, index: int | None, *, cir: int, cburst: int, pir: int, pburst: int) -> None:
        """Set a meter's rates: committed and peak, per second, and bursts."""
        rates = {"cir": cir, "cburst": cburst, "pir": pir, "pburst": pburst}
        self._write_cell("meter_entries", {"meter": name, "index": index, **rates})

    def set_value_set(self, name: str, members: Sequence[Any]) -> None:
        """Set the members of a parser's value set: values, or of a struct mappings of its fields."""
        self._write_cell("value_set_entries", {"value_set": name, "members": list(members)})

    def _write_cell(self, kind: str, tree: dict[str, Any]) -> None:
        async def write() -> None:
            await self._session.write_cells(runtime_entries({kind: [tree]}, self._names).cells.values())

        self._ask(write, kind)
