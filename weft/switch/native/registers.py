"""Registers and value sets of the native switch."""

from __future__ import annotations

from collections.abc import Sequence

from weft.switch.checks import check_index, check_value, named
from weft.switch.lowering.layout import RegisterLayout
from weft.switch.native.base import NativeSwitchBase
from weft.switch.native.values import value_set_bytes


class NativeRegisters(NativeSwitchBase):
    """Reading and writing register arrays and parser value sets."""

    def _register(self, name: str) -> RegisterLayout:
        compiled = self._loaded()
        named(compiled.program.register_arrays, name, "register")
        return compiled.shape.registers[name]

    def register_read(self, register: str, index: int) -> int:
        """One cell of a register array."""
        layout = self._register(register)
        check_index("register", register, index, layout.size)
        return self._register_cells(layout, index, 1)[0]

    def register_read_all(self, register: str) -> Sequence[int]:
        """All cells of a register array."""
        layout = self._register(register)
        return self._register_cells(layout, 0, layout.size)

    def _register_cells(self, layout: RegisterLayout, first: int, count: int) -> list[int]:
        offset = layout.offset_bytes + first * layout.stride_bytes
        cell = layout.cell_bytes
        data = self.native.registers_read(offset, layout.stride_bytes, cell, count)
        return [int.from_bytes(data[at : at + cell], "little") for at in range(0, len(data), cell)]

    def register_write(self, register: str, index: int, value: int) -> None:
        """Set one cell of a register array."""
        layout = self._register(register)
        check_index("register", register, index, layout.size)
        self._register_fill(register, layout, index, 1, value)

    def register_fill(self, register: str, value: int) -> None:
        """Set all cells of a register array."""
        layout = self._register(register)
        self._register_fill(register, layout, 0, layout.size, value)

    def _register_fill(self, name: str, layout: RegisterLayout, first: int, count: int, value: int) -> None:
        check_value(f"register {name!r}", value, layout.width_bits)
        cell = value.to_bytes(layout.cell_bytes, "little")
        offset = layout.offset_bytes + first * layout.stride_bytes
        self.native.registers_fill(offset, layout.stride_bytes, cell, count)

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members of a parser value set, (value, mask) pairs laid out as a `Transition`'s
        value.
        """
        program = self._loaded().program
        named(program.value_sets, value_set, "value set")
        size = value_set_bytes(program, value_set)
        native = []
        for value, mask in members:
            check_value(f"value set {value_set!r}", value, size * 8)
            check_value(f"value set {value_set!r}, mask", mask, size * 8)
            native.append((value.to_bytes(size, "big"), mask.to_bytes(size, "big")))
        self.native.value_set_write(list(program.value_sets).index(value_set), native)
