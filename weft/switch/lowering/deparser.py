"""The deparser: writes valid headers in front of the payload, from the last to the first."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from weft.switch.bmv2json import Deparser
from weft.switch.lowering import checksums, fields
from weft.switch.lowering.emitter import I32, I64, POINTER, Emitter, Value, integer
from weft.switch.lowering.parser import position_address
from weft.switch.lowering.primitives import emit_primitives
from weft.switch.lowering.tracing import report
from weft.switch.trace.places import HeaderEmitted

_GROUP = 4


def emit_finish(emit: Emitter, deparser: Deparser | None) -> None:
    """Emit the code before the headers are written: the deparser's statements and the checksums."""
    if deparser is not None:
        done = emit.block("primitives_done")
        emit_primitives(emit, deparser.primitives, done)
        emit.continue_in(done)
    checksums.update(emit)
    if emit.shared.places is not None and deparser is not None:
        for name in deparser.order:
            with emit.when(fields.is_valid(emit, fields.header_place(emit, name))):
                report(emit, HeaderEmitted(name))
    emit.builder.ret_void()


def emit_deparser(emit: Emitter, deparser: Deparser | None, room: Value, room_bytes: Value) -> None:
    """Write the headers to the end of `room`, which has `room_bytes` (i32).

    Emits a return of the bytes written (i32), or kNoRoom if they do not fit; then some may have been written.
    """
    wide = emit.builder.zext(room_bytes, I64)
    position = emit.local(8)
    emit.store(wide, position, 8)
    # From the last to the first: the payload stays where it is, and headers grow towards the front of the packet.
    for name in reversed(deparser.order) if deparser is not None else ():
        place = fields.header_place(emit, name)
        with _may_be_valid(emit, place), emit.when(fields.is_valid(emit, place)):
            end = emit.load(position, I64, 8)
            size = emit.builder.zext(fields.header_bytes(emit, place), I64)
            # The caller makes room and calls again; few packets grow beyond their headroom.
            with emit.when(emit.builder.icmp_unsigned("<", end, size), likely=False):
                emit.builder.ret(I32(emit.shared.abi["kNoRoom"]))
            start = emit.builder.sub(end, size)
            _write(emit, place, emit.address(room, start))
            emit.store(start, position, 8)
    emit.builder.ret(emit.resize(emit.builder.sub(wide, emit.load(position, I64, 8)), 32))


def emit_in_place(emit: Emitter, names: Sequence[str]) -> None:
    """Write the headers that have been written to (`HeadersInPlace.names`) to where they were parsed."""
    data = emit.builder.inttoptr(emit.load_state("data", 64), POINTER)
    emit.extent(data, emit.builder.zext(emit.load_state("size_bytes"), I64), "the packet")
    written = emit.load_state("headers_written")

    def when_any(numbers: range) -> AbstractContextManager[None]:
        bits = I32(sum(1 << number for number in numbers))
        return emit.when(emit.builder.icmp_unsigned("!=", emit.builder.and_(written, bits), I32(0)))

    # A packet has few of them: in groups, most take one test together.
    for first in range(0, len(names), _GROUP):
        group = range(first, min(first + _GROUP, len(names)))
        with when_any(group):
            for number in group:
                place = fields.header_place(emit, names[number])
                with when_any(range(number, number + 1)), emit.when(fields.is_valid(emit, place)):
                    at = emit.load(position_address(emit, number), integer(16), 2)
                    _write(emit, place, emit.address(data, emit.builder.zext(at, I64)))


def _may_be_valid(emit: Emitter, place: fields.HeaderPlace) -> AbstractContextManager[None]:
    """Return a context for instructions that read the header. They skip a large header unless one has been written,
    because for a packet that has waited it would have to be loaded from memory.
    """
    if not place.large:
        return nullcontext()
    return emit.when(emit.builder.icmp_unsigned("!=", emit.load_state("large_headers_written"), I32(0)))


def _write(emit: Emitter, place: fields.HeaderPlace, target: Value) -> None:
    """Write one header."""
    block = place.block
    if not block.variable_bytes:
        if place.large:
            emit.copy(target, place.address, block.fixed_bytes)
        else:
            fields.copy_chunks(emit, target, place)
        return
    before = block.variable_at_byte
    length = emit.builder.zext(fields.variable_bytes(emit, place), I64)
    emit.copy(target, place.address, before)
    middle = emit.address(target, before)
    emit.copy(middle, emit.address(place.address, block.variable_offset), length)
    rest = emit.address(place.address, before)
    emit.copy(emit.address(middle, length), rest, block.fixed_bytes - before)
