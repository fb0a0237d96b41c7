"""Register arrays: reads and writes at any index, without branches.

An index out of range goes to a spare cell, so that 64 lanes of straight-line code stay straight.
"""

from __future__ import annotations

from weft.switch.lowering.emitter import I64, Emitter, Value, constant, integer
from weft.switch.lowering.layout import RegisterLayout


def in_range(emit: Emitter, size: int, index: Value) -> Value:
    """Whether `index`, an unsigned integer of any width, is below `size` (i1)."""
    width = index.type.width
    if (1 << width) <= size:
        return constant(1, 1)
    return emit.builder.icmp_unsigned("<", index, constant(width, size))


def bounded_index(emit: Emitter, size: int, index: Value) -> Value:
    """`index` as i64, `size` if it is out of range."""
    wide = emit.resize(index, 64) if index.type.width <= 64 else None
    inside = in_range(emit, size, index)
    return emit.builder.select(inside, wide if wide is not None else emit.resize(index, 64), I64(size))


def _cell(emit: Emitter, layout: RegisterLayout, index: Value) -> Value:
    registers = emit.extent(emit.load_context("registers"), emit.shared.registers_bytes, "the registers")
    base = emit.address(registers, layout.offset_bytes)
    offset = emit.once(
        ("register cell", layout.size, layout.stride_bytes, index),
        lambda: emit.builder.mul(bounded_index(emit, layout.size, index), I64(layout.stride_bytes)),
    )
    return emit.address(base, offset)


def read(emit: Emitter, array: str, index: Value) -> Value:
    """The cell's value, as wide as the array's cells; undefined but harmless for an index out of range."""
    layout = emit.shared.registers[array]
    kind = integer(layout.cell_bytes * 8)
    return emit.resize(
        emit.load(_cell(emit, layout, index), kind, min(layout.cell_bytes, 8)), layout.width_bits
    )


def write(emit: Emitter, array: str, index: Value, value: Value) -> None:
    """Write `value`, as wide as the array's cells; an index out of range changes no cell."""
    layout = emit.shared.registers[array]
    emit.store(
        emit.resize(value, layout.cell_bytes * 8), _cell(emit, layout, index), min(layout.cell_bytes, 8)
    )
