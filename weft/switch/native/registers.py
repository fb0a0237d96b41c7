"""Registers of the native switch."""

from __future__ import annotations

from collections.abc import Sequence

from weft.engine import _core
from weft.switch.backend.checks import check_index, check_value, named
from weft.switch.lowering.register_layout import RegisterLayout
from weft.switch.native.running import RunningProgram


class Registers:
    """Reads and writes register arrays."""

    def __init__(self, native: _core.Switch, running: RunningProgram) -> None:
        self._native = native
        self._running = running

    def _layout(self, name: str) -> RegisterLayout:
        compiled = self._running.compiled
        named(compiled.program.register_arrays, name, "register")
        return compiled.shape.registers[name]

    def read(self, register: str, index: int) -> int:
        """One cell of a register array."""
        layout = self._layout(register)
        check_index("register", register, index, layout.size)
        return self._read(layout, index, 1)[0]

    def read_all(self, register: str) -> Sequence[int]:
        """All cells of a register array."""
        layout = self._layout(register)
        return self._read(layout, 0, layout.size)

    def read_cells(self, register: str, first: int, count: int) -> Sequence[int]:
        """Return `count` cells of a register array from `first` on."""
        layout = self._layout(register)
        check_index("register", register, first + count - 1, layout.size)
        return self._read(layout, first, count)

    def _read(self, layout: RegisterLayout, first: int, count: int) -> list[int]:
        offset = layout.offset_bytes + first * layout.stride_bytes
        cell = layout.cell_bytes
        data = self._native.registers_read(offset, layout.stride_bytes, cell, count)
        return [int.from_bytes(data[at : at + cell], "little") for at in range(0, len(data), cell)]

    def write(self, register: str, index: int, value: int) -> None:
        """Set one cell of a register array."""
        layout = self._layout(register)
        check_index("register", register, index, layout.size)
        self._fill(register, layout, index, 1, value)

    def fill(self, register: str, value: int) -> None:
        """Set all cells of a register array."""
        layout = self._layout(register)
        self._fill(register, layout, 0, layout.size, value)

    def _fill(self, name: str, layout: RegisterLayout, first: int, count: int, value: int) -> None:
        check_value(f"register {name!r}", value, layout.width_bits)
        cell = value.to_bytes(layout.cell_bytes, "little")
        offset = layout.offset_bytes + first * layout.stride_bytes
        self._native.registers_fill(offset, layout.stride_bytes, cell, count)
