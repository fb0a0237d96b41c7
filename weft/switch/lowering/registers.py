"""Register arrays: reads and writes at any index, without branches.

An index out of range uses a spare cell, so that 64 lanes stay straight-line code.
"""

from __future__ import annotations

from weft.switch.lowering.emitter import I64, Emitter, Value, constant, integer


def may_be_outside(size: int, index: Value) -> bool:
    """Whether `index`, an unsigned integer of any width, may be `size` or more."""
    return int(1 << index.type.width) > size


def in_range(emit: Emitter, size: int, index: Value) -> Value:
    """Whether `index`, an unsigned integer of any width, is below `size` (i1)."""
    if is_inside(emit, size, index):
        return constant(1, 1)
    return emit.builder.icmp_unsigned("<", index, constant(index.type.width, size))


def is_inside(emit: Emitter, size: int, index: Value) -> bool:
    """Whether `index` is known to be below `size`: by its width, or by a comparison before a loop over lanes."""
    return not may_be_outside(size, index) or (emit.lane is not None and emit.lane.inside)


def bounded_index(emit: Emitter, size: int, index: Value) -> Value:
    """`index` as i64, `size` if it is out of range."""
    wide = emit.resize(index, 64)
    if is_inside(emit, size, index):
        return wide
    return emit.builder.select(in_range(emit, size, index), wide, I64(size))


def _cell(emit: Emitter, array: str, index: Value) -> Value:
    layout = emit.shared.registers[array]
    registers = emit.extent(emit.load_context("registers"), emit.shared.registers_bytes, "the registers")
    base = emit.address(registers, layout.offset_bytes)
    if emit.lane is not None and array in emit.lane.arrays:
        base = emit.lane_address(base, emit.lane.arrays[array])
    # Arrays of equal size and stride that are used at one index share the multiplication and the comparison.
    offset = emit.once(
        ("register cell", layout.size, layout.stride_bytes, index),
        lambda: emit.builder.mul(bounded_index(emit, layout.size, index), I64(layout.stride_bytes)),
    )
    return emit.address(base, offset)


def read(emit: Emitter, array: str, index: Value) -> Value:
    """The cell's value, as wide as the array's cells; undefined but harmless for an index out of range."""
    layout = emit.shared.registers[array]
    kind = integer(layout.cell_bytes * 8)
    return emit.resize(emit.load(_cell(emit, array, index), kind, min(layout.cell_bytes, 8)), layout.width_bits)


def write(emit: Emitter, array: str, index: Value, value: Value) -> None:
    """Write `value`, as wide as the array's cells; an index out of range changes no cell."""
    layout = emit.shared.registers[array]
    emit.store(emit.resize(value, layout.cell_bytes * 8), _cell(emit, array, index), min(layout.cell_bytes, 8))
