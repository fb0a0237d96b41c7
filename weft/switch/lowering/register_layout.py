"""Layout of register arrays: arrays that are used together are interleaved cell by cell.

Arrays of one size that an action reads or writes at one index are a *group*: their cells of one index are a record, so
that a packet that uses them all fetches neighbouring cache lines, and a vector of cells is one load. Other arrays
form groups by size and width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.switch.bmv2json import (
    Expression,
    PrimitiveCall,
    Program,
    RegisterArray,
    RegisterArrayRef,
)
from weft.switch.lowering.layout import align, native_bytes

CACHE_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class RegisterLayout:
    """Cell `i` is at `offset_bytes + i * stride_bytes`; cell `size` is a spare for indices out of range.

    `group_bytes` is the start of the group's cells.
    """

    offset_bytes: int
    stride_bytes: int
    cell_bytes: int
    size: int
    width_bits: int
    group_bytes: int


def register_layouts(program: Program) -> tuple[dict[str, RegisterLayout], int]:
    """Layout of all register arrays, and their size in bytes together."""
    layouts: dict[str, RegisterLayout] = {}
    offset = 0
    for members in _groups(program):
        offset = align(offset, CACHE_LINE_BYTES)
        places, record_bytes = _record(members)
        size = members[0].size
        for array, place in zip(members, places, strict=True):
            cell_bytes = native_bytes(array.width_bits)
            layouts[array.name] = RegisterLayout(
                offset + place, record_bytes, cell_bytes, size, array.width_bits, offset
            )
        offset += (size + 1) * record_bytes
    return layouts, align(offset, CACHE_LINE_BYTES)


def _record(members: list[RegisterArray]) -> tuple[list[int], int]:
    """Return the offset of each member's cell in a record, and the record's size.

    Records of at most a cache line do not cross cache lines, nor do the aligned vectors of larger ones.
    """
    places, end, largest = [], 0, 1
    for array in members:
        cell_bytes = native_bytes(array.width_bits)
        alignment = min(cell_bytes, 8)
        places.append(align(end, alignment))
        end, largest = places[-1] + cell_bytes, max(largest, alignment)
    if len(members) == 1:
        return places, align(end, largest)
    if end > CACHE_LINE_BYTES // 2:
        return places, align(end, CACHE_LINE_BYTES)
    return places, 1 << (end - 1).bit_length()


def _groups(program: Program) -> list[list[RegisterArray]]:
    """Arrays of each group, the widest first, else in the program's order."""
    arrays = program.register_arrays
    group_of: dict[str, list[str]] = {name: [name] for name in arrays}
    for action in program.actions.values():
        together: dict[tuple[int, Expression], str] = {}
        for name, index in _uses(action.primitives):
            first = together.setdefault((arrays[name].size, index), name)
            if group_of[first] is not group_of[name]:
                group_of[first].extend(group_of[name])
                for member in group_of[name]:
                    group_of[member] = group_of[first]
    groups: dict[object, list[RegisterArray]] = {}
    for name, array in arrays.items():
        alone = len(group_of[name]) == 1
        key = (array.size, native_bytes(array.width_bits)) if alone else id(group_of[name])
        groups.setdefault(key, []).append(array)
    for members in groups.values():
        members.sort(key=lambda array: -min(native_bytes(array.width_bits), 8))
    return list(groups.values())


def _uses(calls: Iterable[PrimitiveCall]) -> Iterator[tuple[str, Expression]]:
    """Yield the arrays that calls read and write, each with its index."""
    for call in calls:
        match call.name, call.arguments:
            case "register_read", (_, RegisterArrayRef(name), index):
                yield name, index  # type: ignore[misc]
            case "register_write", (RegisterArrayRef(name), index, _):
                yield name, index  # type: ignore[misc]
