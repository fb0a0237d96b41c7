"""Headers and fields in memory: their places, and access to them."""

from __future__ import annotations

from dataclasses import dataclass

from weft.switch.bmv2json import FieldRef
from weft.switch.lowering.emitter import I8, I32, Emitter, Value, constant, integer
from weft.switch.lowering.errors import UnsupportedError
from weft.switch.lowering.layout import BlockLayout, Chunk, FieldSlot, bytes_for, native_bytes


@dataclass(frozen=True, slots=True)
class HeaderPlace:
    """A header's block; `siblings` are the blocks of the other members if it belongs to a union."""

    block: BlockLayout
    address: Value
    siblings: tuple[HeaderPlace, ...] = ()
    large: bool = False
    """Whether writes must be recorded, so that it is cleared for the next packet."""
    name: str | None = None
    """None for one that is chosen at run time."""


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """A field in a header's block; `slot` None stands for the header's validity.

    `alone`: it is whole bytes and stored separately from its chunk.
    """

    header: HeaderPlace
    slot: FieldSlot | None
    alone: bool = False


def header_place(emit: Emitter, name: str) -> HeaderPlace:
    """The place of the instance called `name`."""
    layout = emit.layout
    siblings = tuple(
        HeaderPlace(layout.blocks[other], _block_address(emit, other), name=other)
        for other in layout.union_siblings.get(name, ())
    )
    return HeaderPlace(layout.blocks[name], _block_address(emit, name), siblings, layout.is_large(name), name)


def _block_address(emit: Emitter, name: str) -> Value:
    address = emit.address(emit.state, emit.layout.offsets[name])
    return emit.part(address, emit.layout.blocks[name].size_bytes, f"'{name}'")


def field_place(emit: Emitter, field: FieldRef) -> FieldPlace:
    """The place of a field of a named instance."""
    # A field needs no siblings: writing it changes no validity.
    block = emit.layout.blocks[field.header]
    slot = None if field.is_validity else block.fields[field.field]
    if slot is not None and slot.temporary is not None:
        kind = slot.temporary
        address = emit.address(emit.temporaries[kind], emit.layout.temporaries[field.header, kind])
        address = emit.part(address, block.temporaries_bytes[kind], f"temporaries of '{field.header}'")
        return FieldPlace(HeaderPlace(block, address), slot)
    address, large = _block_address(emit, field.header), emit.layout.is_large(field.header)
    if emit.lane is not None and field in emit.lane.fields:
        # The loop has recorded that it writes to a large header.
        address = emit.lane_address(address, emit.lane.fields[field])
        return FieldPlace(HeaderPlace(block, address, name=field.header), slot, alone=True)
    return FieldPlace(HeaderPlace(block, address, large=large, name=field.header), slot)


def note_write(emit: Emitter, header: HeaderPlace) -> None:
    """Record a write to a header, at run time for a large one."""
    in_place = emit.shared.in_place
    if in_place is not None and header.block.wire:
        number = in_place.number_written(header.name)
        if number is not None:
            written = emit.builder.or_(emit.load_state("headers_written"), I32(1 << number))
            emit.store_state("headers_written", written)
    _note_large(emit, header)


def _note_large(emit: Emitter, header: HeaderPlace) -> None:
    if not header.large:
        return

    def note() -> Value:
        emit.store_state("large_headers_written", I32(1))
        return I32(1)

    emit.once(("large header written",), note)


# ---- validity


def is_valid(emit: Emitter, header: HeaderPlace) -> Value:
    """Whether the header is valid (i1); metadata always is."""
    if not header.block.wire:
        return constant(1, 1)
    flag = emit.load(emit.address(header.address, header.block.valid_offset), I8)
    return emit.builder.icmp_unsigned("!=", flag, I8(0))


def set_valid(emit: Emitter, header: HeaderPlace, *, extracted: bool = False) -> None:
    """Mark valid, which makes the other members of a union invalid."""
    if not header.block.wire:
        return
    for sibling in header.siblings:
        set_invalid(emit, sibling)
    if extracted:
        _note_large(emit, header)
    else:
        note_write(emit, header)
        note_move(emit)
    emit.store(I8(1), emit.address(header.address, header.block.valid_offset))


def set_invalid(emit: Emitter, header: HeaderPlace) -> None:
    """Mark invalid; as in BMv2, its fields keep their values."""
    if header.block.wire:
        note_move(emit)
        emit.store(I8(0), emit.address(header.address, header.block.valid_offset))


def note_move(emit: Emitter) -> None:
    """Record that the packet's headers are no longer those that were parsed."""
    if emit.shared.in_place is not None:
        emit.store_state("headers_moved", I32(1))


def clear_fields(emit: Emitter, header: HeaderPlace) -> None:
    """Set all fields to zero; as in BMv2, the length of a variable-length field is kept."""
    note_write(emit, header)
    emit.clear(header.address, header.block.length_offset)


def copy_header(emit: Emitter, target: HeaderPlace, source: HeaderPlace) -> None:
    """Assign header to header, validity included."""
    if target.block is not source.block and target.block != source.block:
        raise UnsupportedError("an assignment between a header and metadata")
    if not target.block.wire:
        copy_block(emit, target, source)
        return
    became_valid = is_valid(emit, source)
    note_write(emit, target)
    set_invalid(emit, target)
    # As in BMv2, an invalid source only makes the target invalid.
    with emit.when(became_valid):
        copy_block(emit, target, source)
        # Only now: the source may be one of the target's siblings.
        set_valid(emit, target)


def copy_block(emit: Emitter, target: HeaderPlace, source: HeaderPlace) -> None:
    """Copy the whole block, whether valid or not."""
    note_write(emit, target)
    emit.copy(target.address, source.address, target.block.size_bytes)


def variable_bytes(emit: Emitter, header: HeaderPlace) -> Value:
    """Present length of the header's variable-length field in bytes (i32)."""
    return emit.load(emit.address(header.address, header.block.length_offset), I32, 4)


def header_bytes(emit: Emitter, header: HeaderPlace) -> Value:
    """Present size of the header in a packet (i32)."""
    fixed = I32(header.block.fixed_bytes)
    if not header.block.variable_bytes:
        return fixed
    return emit.builder.add(fixed, variable_bytes(emit, header))


# ---- fields


def load_field(emit: Emitter, place: FieldPlace) -> Value:
    """The field's value, as wide as the field."""
    if place.slot is None:
        return is_valid(emit, place.header)
    if place.slot.variable:
        return _load_variable(emit, place.header)
    if place.header.block.wire:
        return load_bits(emit, place.header.address, place.slot.bit_offset, place.slot.width_bits)
    size = native_bytes(place.slot.width_bits)
    address = emit.address(place.header.address, place.slot.bit_offset // 8)
    return emit.resize(emit.load(address, integer(size * 8), min(size, 8)), place.slot.width_bits)


def store_field(emit: Emitter, place: FieldPlace, value: Value) -> None:
    """Write the field; `value` is as wide as the field."""
    if place.slot is None:
        raise UnsupportedError("an assignment to a header's validity")
    note_write(emit, place.header)
    if place.slot.variable:
        _store_variable(emit, place.header, value)
        return
    if place.alone:
        address = emit.address(place.header.address, place.slot.bit_offset // 8)
        emit.store(emit.swap_bytes(value), address)
        return
    if place.header.block.wire:
        _store_bits(emit, place.header, place.slot.bit_offset, value)
        return
    size = native_bytes(place.slot.width_bits)
    address = emit.address(place.header.address, place.slot.bit_offset // 8)
    emit.store(emit.resize(value, size * 8), address, min(size, 8))


def _load_variable(emit: Emitter, header: HeaderPlace) -> Value:
    """A variable-length field as a number as wide as its largest length."""
    width = header.block.variable_bytes * 8
    whole = emit.load(emit.address(header.address, header.block.variable_offset), integer(width))
    unused, empty = _unused_bits(emit, header)
    value = emit.builder.lshr(emit.swap_bytes(whole), unused)
    return emit.builder.select(empty, constant(width, 0), value)


def _store_variable(emit: Emitter, header: HeaderPlace, value: Value) -> None:
    """Write a number to a variable-length field, cut to its present length."""
    width = header.block.variable_bytes * 8
    unused, empty = _unused_bits(emit, header)
    word = emit.builder.select(empty, constant(width, 0), emit.builder.shl(value, unused))
    emit.store(emit.swap_bytes(word), emit.address(header.address, header.block.variable_offset))


def _unused_bits(emit: Emitter, header: HeaderPlace) -> tuple[Value, Value]:
    """Return how many bits a variable-length field is below its maximum (0 if it is empty), and whether it is empty."""
    width = header.block.variable_bytes * 8
    present = emit.builder.shl(variable_bytes(emit, header), I32(3))
    empty = emit.builder.icmp_unsigned("==", present, I32(0))
    unused = emit.builder.select(empty, I32(0), emit.builder.sub(I32(width), present))
    return emit.resize(unused, width), empty


def load_bits(emit: Emitter, base: Value, bit_offset: int, width_bits: int) -> Value:
    """`width_bits` of a big-endian bit string from `bit_offset` on."""
    first, last = bit_offset // 8, (bit_offset + width_bits - 1) // 8
    span_bits = (last - first + 1) * 8
    word = emit.swap_bytes(emit.load(emit.address(base, first), integer(span_bits)))
    behind = span_bits - bit_offset % 8 - width_bits
    if behind:
        word = emit.builder.lshr(word, constant(span_bits, behind))
    return emit.resize(word, width_bits)


def _store_bits(emit: Emitter, header: HeaderPlace, bit_offset: int, value: Value) -> None:
    """Write a field of a header as big-endian bits of its chunks."""
    end = bit_offset + value.type.width
    for chunk in header.block.chunks:
        first, last = chunk.offset_bytes * 8, (chunk.offset_bytes + chunk.size_bytes) * 8
        if first < end and bit_offset < last:
            behind = max(end - last, 0)  # bits of the value that belong to later chunks
            part = emit.builder.lshr(value, constant(value.type.width, behind)) if behind else value
            width = min(end, last) - max(bit_offset, first)
            _store_in_chunk(emit, header, chunk, max(bit_offset, first) - first, emit.resize(part, width))


def _store_in_chunk(emit: Emitter, header: HeaderPlace, chunk: Chunk, bit_offset: int, value: Value) -> None:
    """Write bits that begin `bit_offset` after the most significant bit of the chunk and end within it."""
    width, whole = value.type.width, chunk.size_bytes * 8
    address = emit.address(header.address, chunk.offset_bytes)
    word = emit.resize(value, whole)
    if width != whole:
        behind = whole - bit_offset - width
        if behind:
            word = emit.builder.shl(word, constant(whole, behind))
        mask = ((1 << width) - 1) << behind
        old = emit.swap_bytes(emit.load(address, integer(whole), chunk.size_bytes))
        word = emit.builder.or_(emit.builder.and_(old, constant(whole, ~mask)), word)
    emit.store(emit.swap_bytes(word), address, chunk.size_bytes)


def copy_chunks(emit: Emitter, target: Value, header: HeaderPlace) -> None:
    """Copy a header's fixed bytes to `target` in the pieces in which they were stored."""
    for chunk in header.block.chunks:
        kind = integer(chunk.size_bytes * 8)
        address = emit.address(header.address, chunk.offset_bytes)
        emit.store(emit.load_alone(address, kind, chunk.size_bytes), emit.address(target, chunk.offset_bytes))


def store_big_endian(emit: Emitter, value: Value, address: Value) -> None:
    """Write `value`, padded with zero bits in front to whole bytes."""
    padded = emit.resize(value, bytes_for(value.type.width) * 8)
    emit.store(emit.swap_bytes(padded), address)
