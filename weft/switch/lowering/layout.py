"""Memory layout of a program's headers, metadata, registers, counters and action parameters.

A header is a block: its fixed fields as on the wire, then the bytes of its variable-length field, then that
field's length in bytes (u32), then one byte of validity. A header that has never been valid is all zeros, and one that
has become invalid keeps its fields, so reading them needs no check. Metadata fields are in native byte order, aligned.
Register arrays that are used together are interleaved (`register_groups`), so that lanes in separate arrays are
adjacent in memory.

A packet's state has two parts: one cleared for every packet, and large headers, which are cleared only if the
previous packet wrote to one of them. Large headers lie far behind the rest, in pages that take no memory until a
packet has such a header (`engine/switch/state_slab.hpp`). Temporary metadata fields
(`weft.switch.lowering.temporaries`) are not part of it: they are on the stack of the pipeline's function, or only in
registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache

from weft.switch.bmv2json import Action, HeaderType, Program, Table

BLOCK_ALIGNMENT = 8

CLEARED_ALIGNMENT = 16
"""Alignment of both ends of the cleared part, for whole vectors."""

LARGE_HEADER_BYTES = 64
"""A header with a block larger than this, a cache line, is cleared only if large headers were written."""

LARGE_APART_BYTES = 2 << 20
"""From a state to its large headers, or a little more: a huge page, which holds that part of many states."""
_LEAST_STATES_APART = 16


def bytes_for(width_bits: int) -> int:
    """Whole bytes that hold `width_bits`."""
    return (width_bits + 7) // 8


def align(offset: int, alignment: int) -> int:
    """The next multiple of `alignment` from `offset` on."""
    return (offset + alignment - 1) // alignment * alignment


@cache
def native_bytes(width_bits: int) -> int:
    """Size of the native integer that stores `width_bits`: 1, 2, 4 or a multiple of 8 bytes."""
    size = bytes_for(width_bits)
    return next((native for native in (1, 2, 4) if size <= native), align(size, 8))


class Temporary(Enum):
    """Users of a temporary, which determine whether LLVM can keep it in registers."""

    PRIVATE = "private"
    """Only its pipeline uses it, including inlined actions, which are called from one place."""
    SHARED = "shared"
    """An action called from several places also uses it; it may remain a function and gets the address."""


@dataclass(frozen=True, slots=True)
class FieldSlot:
    """A field within its block; `bit_offset` counts from the most significant bit of the block's first
    byte.
    """

    width_bits: int
    signed: bool
    bit_offset: int
    variable: bool = False
    temporary: Temporary | None = None
    """For metadata in a pipeline's memory of this kind; `bit_offset` counts from the start of the instance's part."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of a header that are stored together: 1, 2, 4 or 8, aligned to as many."""

    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """A header or metadata instance; `wire` is False for metadata, which has fields in native integers."""

    wire: bool
    fields: Mapping[str, FieldSlot]
    field_order: tuple[str, ...]
    fixed_bytes: int
    variable_bytes: int
    variable_at_byte: int
    size_bytes: int
    temporaries_bytes: Mapping[Temporary, int] = field(default_factory=dict)
    chunks: tuple[Chunk, ...] = ()
    """A header's fixed bytes in pieces. A piece is stored as a whole, and loaded as a whole in large copies.

    A processor forwards a recent store to a load only if one store covers the whole load; otherwise the load waits
    until the stores have reached the cache.
    """

    @property
    def variable_offset(self) -> int:
        """Offset of the variable-length field's bytes."""
        return self.fixed_bytes

    @property
    def length_offset(self) -> int:
        """Offset of the variable-length field's length (u32, bytes)."""
        return align(self.fixed_bytes + self.variable_bytes, 4)

    @property
    def valid_offset(self) -> int:
        """Offset of the validity byte."""
        return self.length_offset + (4 if self.variable_bytes else 0)

    @property
    def max_wire_bytes(self) -> int:
        """Largest size of the header in a packet."""
        return self.fixed_bytes + self.variable_bytes


def _chunks(slots: Iterable[FieldSlot], fixed_bytes: int) -> tuple[Chunk, ...]:
    """Return chunks of eight bytes, split into four if no field crosses their middle, and smaller ones at the end."""
    crossed = {
        byte
        for slot in slots
        if not slot.variable
        for byte in range(slot.bit_offset // 8 + 1, (slot.bit_offset + slot.width_bits - 1) // 8 + 1)
    }
    chunks: list[Chunk] = []
    offset = 0
    while offset < fixed_bytes:
        # Aligned, so that no store crosses a cache line.
        size = next(size for size in (8, 4, 2, 1) if offset % size == 0 and offset + size <= fixed_bytes)
        if size == 8 and offset + 4 not in crossed:
            size = 4
        chunks.append(Chunk(offset, size))
        offset += size
    return tuple(chunks)


def header_block(header_type: HeaderType) -> BlockLayout:
    """Return the layout of a header instance. Raises ValueError if its variable-length field does not start and end at
    a byte.
    """
    slots: dict[str, FieldSlot] = {}
    offset = variable_bits = variable_at = 0
    for item in header_type.fields:
        if item.variable:
            if offset % 8 or item.width_bits % 8:
                raise ValueError(f"header type '{header_type.name}': field '{item.name}' is not byte-aligned")
            variable_bits, variable_at = item.width_bits, offset // 8
            slots[item.name] = FieldSlot(item.width_bits, False, offset, variable=True)
            continue
        slots[item.name] = FieldSlot(item.width_bits, item.signed, offset)
        offset += item.width_bits
    order = tuple(item.name for item in header_type.fields)
    block = BlockLayout(True, slots, order, bytes_for(offset), variable_bits // 8, variable_at, 0)
    size = align(block.valid_offset + 1, BLOCK_ALIGNMENT)
    chunks = _chunks(slots.values(), block.fixed_bytes)
    return replace(block, size_bytes=size, chunks=chunks)


def metadata_block(header_type: HeaderType, temporaries: Mapping[str, Temporary]) -> BlockLayout:
    """Return the layout of a metadata instance; a variable-length field (a varbit variable) comes last.

    Fields that are `temporaries` are in separate blocks.
    """
    slots: dict[str, FieldSlot] = {}
    ends: dict[Temporary | None, int] = {None: 0}
    variable_bits = 0
    for item in header_type.fields:
        if item.variable:
            if item.width_bits % 8:
                raise ValueError(f"metadata type '{header_type.name}': field '{item.name}' is not whole bytes")
            variable_bits = item.width_bits
            slots[item.name] = FieldSlot(item.width_bits, False, 0, variable=True)
            continue
        temporary = temporaries.get(item.name)
        size = native_bytes(item.width_bits)
        offset = align(ends.get(temporary, 0), min(size, BLOCK_ALIGNMENT))
        slots[item.name] = FieldSlot(item.width_bits, item.signed, offset * 8, temporary=temporary)
        ends[temporary] = offset + size
    order = tuple(item.name for item in header_type.fields)
    offset = ends.pop(None)
    temporaries_bytes = {kind: align(end, BLOCK_ALIGNMENT) for kind, end in ends.items() if kind is not None}
    if not variable_bits:
        size = align(offset, BLOCK_ALIGNMENT)
        return BlockLayout(False, slots, order, 0, 0, 0, size, temporaries_bytes)
    block = BlockLayout(False, slots, order, offset, variable_bits // 8, offset, 0, temporaries_bytes)
    return replace(block, size_bytes=align(block.valid_offset, BLOCK_ALIGNMENT))


@dataclass(frozen=True, slots=True)
class StackLayout:
    """A header stack: equal blocks `stride_bytes` apart, followed by a spare block for indices out of
    range.
    """

    offset_bytes: int
    stride_bytes: int
    size: int
    next_index_offset_bytes: int
    block: BlockLayout


@dataclass(frozen=True, slots=True)
class UnionStackLayout:
    """A stack of unions: `member_offsets` of the members' blocks within an element; one spare element at
    the end.
    """

    offset_bytes: int
    stride_bytes: int
    size: int
    next_index_offset_bytes: int
    member_offsets: tuple[int, ...]
    member_blocks: tuple[BlockLayout, ...]


@dataclass(slots=True)
class StateLayout:
    """A packet's state; offsets are from its start.

    The first `cleared_bytes` are cleared for every packet. Large headers are in parts of `large_parts_bytes`, the first
    of which begins `large_apart_bytes` after the state, each other one as long after the part before. `size_bytes` is
    the end of the last one.
    """

    size_bytes: int
    cleared_bytes: int
    metadata_offset_bytes: int
    metadata_bytes: int
    large_apart_bytes: int = LARGE_APART_BYTES
    large_parts_bytes: list[int] = field(default_factory=list)
    blocks: dict[str, BlockLayout] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    temporaries: dict[tuple[str, Temporary], int] = field(default_factory=dict)
    """Offsets of the metadata instances' parts of a pipeline's temporaries of each kind."""
    temporaries_bytes: dict[Temporary, int] = field(default_factory=dict)
    """Sizes of a pipeline's temporaries, by kind in use."""
    stacks: dict[str, StackLayout] = field(default_factory=dict)
    union_stacks: dict[str, UnionStackLayout] = field(default_factory=dict)
    union_siblings: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def is_large(self, header: str) -> bool:
        """Whether this header is cleared only if something has written to a large header."""
        return self.offsets[header] >= self.cleared_bytes


def state_layout(program: Program, start: int, temporaries: Mapping[tuple[str, str], Temporary]) -> StateLayout:
    """Lay out all instances of `program` from offset `start`. Raises ValueError as the block layouts do.

    `temporaries` are the metadata fields, by instance and field, that are not part of the state.
    """
    layout = StateLayout(0, 0, start, 0)
    offset = start
    for header in program.headers.values():
        if header.metadata:
            own = {name: kind for (instance, name), kind in temporaries.items() if instance == header.name}
            layout.blocks[header.name] = block = metadata_block(header.type, own)
            layout.offsets[header.name] = offset
            offset += block.size_bytes
    layout.metadata_bytes = offset - start
    offset = _place_stacks(program, layout, offset)
    offset = _place_union_stacks(program, layout, offset)
    for union in program.header_unions.values():
        for name in union.headers:
            layout.union_siblings[name] = tuple(other for other in union.headers if other != name)
    single = {
        header.name: header_block(header.type)
        for header in program.headers.values()
        if header.name not in layout.blocks
    }
    large = {
        name
        for name, block in single.items()
        if block.size_bytes > LARGE_HEADER_BYTES and name not in layout.union_siblings
    }
    offset = _place_headers(layout, {name: single[name] for name in single if name not in large}, offset)
    # Everything up to here is cleared for each packet, so what is small and often used lies in front.
    layout.cleared_bytes = align(offset, CLEARED_ALIGNMENT)
    _place_large_headers(layout, {name: single[name] for name in single if name in large})
    _place_temporaries(layout)
    return layout


def _place_large_headers(layout: StateLayout, blocks: Mapping[str, BlockLayout]) -> None:
    # A part of this size takes no more room behind the state than the state itself does.
    room_bytes = max([layout.cleared_bytes, *(block.size_bytes for block in blocks.values())])
    parts = layout.large_parts_bytes
    places: dict[str, tuple[int, int]] = {}
    for name, block in blocks.items():
        if not parts or parts[-1] + block.size_bytes > room_bytes:
            parts.append(0)
        places[name] = len(parts), parts[-1]
        parts[-1] += block.size_bytes
    while layout.large_apart_bytes < (_LEAST_STATES_APART + len(parts)) * room_bytes:
        layout.large_apart_bytes *= 2
    # A processor takes a load for one of a recent store whose address is the same but for whole pages.
    layout.large_apart_bytes += align(layout.cleared_bytes, CLEARED_ALIGNMENT)
    for name, (part, offset) in places.items():
        layout.blocks[name] = blocks[name]
        layout.offsets[name] = part * layout.large_apart_bytes + offset
    layout.size_bytes = len(parts) * layout.large_apart_bytes + parts[-1] if parts else layout.cleared_bytes


def _place_temporaries(layout: StateLayout) -> None:
    for name, block in layout.blocks.items():
        for kind, size_bytes in block.temporaries_bytes.items():
            start = layout.temporaries[name, kind] = layout.temporaries_bytes.get(kind, 0)
            layout.temporaries_bytes[kind] = start + size_bytes


def _place_headers(layout: StateLayout, blocks: Mapping[str, BlockLayout], offset: int) -> int:
    for name, block in blocks.items():
        layout.blocks[name] = block
        layout.offsets[name] = offset
        offset += block.size_bytes
    return offset


def _place_stacks(program: Program, layout: StateLayout, offset: int) -> int:
    for stack in program.header_stacks.values():
        block = header_block(stack.type)
        next_index, offset = offset, offset + BLOCK_ALIGNMENT
        layout.stacks[stack.name] = StackLayout(offset, block.size_bytes, len(stack.headers), next_index, block)
        for index, name in enumerate(stack.headers):
            layout.blocks[name] = block
            layout.offsets[name] = offset + index * block.size_bytes
        # The spare block takes what an index out of range would write, so that no access needs a branch.
        offset += (len(stack.headers) + 1) * block.size_bytes
    return offset


def _place_union_stacks(program: Program, layout: StateLayout, offset: int) -> int:
    for stack in program.header_union_stacks.values():
        blocks = tuple(header_block(header_type) for _, header_type in stack.type.members)
        member_offsets = tuple(sum(block.size_bytes for block in blocks[:i]) for i in range(len(blocks)))
        stride = sum(block.size_bytes for block in blocks)
        next_index, offset = offset, offset + BLOCK_ALIGNMENT
        layout.union_stacks[stack.name] = UnionStackLayout(
            offset, stride, len(stack.unions), next_index, member_offsets, blocks
        )
        for index, union_name in enumerate(stack.unions):
            for member, name in enumerate(program.header_unions[union_name].headers):
                layout.blocks[name] = blocks[member]
                layout.offsets[name] = offset + index * stride + member_offsets[member]
        offset += (len(stack.unions) + 1) * stride
    return offset


@dataclass(frozen=True, slots=True)
class ActionDataLayout:
    """Offsets of an action's parameters, native integers, in the data that a table entry holds."""

    offsets: tuple[int, ...]
    widths_bits: tuple[int, ...]
    size_bytes: int

    def pack(self, arguments: Iterable[int]) -> bytes:
        """The data for these argument values, which must fit."""
        data = bytearray(self.size_bytes)
        for offset, width, value in zip(self.offsets, self.widths_bits, arguments, strict=True):
            size = native_bytes(width)
            data[offset : offset + size] = value.to_bytes(size, "little")
        return bytes(data)

    def unpack(self, data: bytes) -> tuple[int, ...]:
        """The argument values in `data`."""
        return tuple(
            int.from_bytes(data[offset : offset + native_bytes(width)], "little")
            for offset, width in zip(self.offsets, self.widths_bits, strict=True)
        )


def action_data_layout(action: Action) -> ActionDataLayout:
    """Layout of the parameters of `action`."""
    offsets: list[int] = []
    offset = 0
    for parameter in action.parameters:
        size = native_bytes(parameter.width_bits)
        offset = align(offset, min(size, BLOCK_ALIGNMENT))
        offsets.append(offset)
        offset += size
    widths = tuple(parameter.width_bits for parameter in action.parameters)
    return ActionDataLayout(tuple(offsets), widths, offset)


def key_offsets(table: Table) -> tuple[int, ...]:
    """Offset in bytes of each key field in the table's key; fields are big-endian, padded to whole bytes."""
    offsets = []
    offset = 0
    for key in table.key:
        offsets.append(offset)
        offset += bytes_for(key.field.width_bits)
    return tuple(offsets)


def key_bytes(table: Table) -> int:
    """Size of the table's key."""
    return sum(bytes_for(key.field.width_bits) for key in table.key)
