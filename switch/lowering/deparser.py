"""The deparser: valid headers in order into a buffer."""

from __future__ import annotations

from switch.bmv2json import Deparser
from switch.lowering import checksums
from switch.lowering.emitter import I64, Emitter, Value
from switch.lowering.fields import HeaderPlace, copy_chunks, header_place, is_valid, variable_bytes
from switch.lowering.primitives import emit_primitives
from switch.lowering.tracing import report
from switch.trace.places import HeaderEmitted


def emit_deparser(emit: Emitter, deparser: Deparser | None, buffer: Value) -> None:
    """Update checksums and write the headers to `buffer`; returns the number of bytes (i32)."""
    if deparser is not None:
        done = emit.block("primitives_done")
        emit_primitives(emit, deparser.primitives, done)
        emit.continue_in(done)
    checksums.update(emit)
    position = emit.local(8)
    emit.store(I64(0), position, 8)
    for name in deparser.order if deparser is not None else ():
        place = header_place(emit, name)
        with emit.when(is_valid(emit, place)):
            at = emit.load(position, I64, 8)
            report(emit, HeaderEmitted(name))
            size = _write(emit, place, emit.address(buffer, at))
            emit.store(emit.builder.add(at, size), position, 8)
    emit.builder.ret(emit.resize(emit.load(position, I64, 8), 32))


def _write(emit: Emitter, place: HeaderPlace, target: Value) -> Value:
    """Write one header; its size (i64)."""
    block = place.block
    if not block.variable_bytes:
        if place.large:
            emit.copy(target, place.address, block.fixed_bytes)
        else:
            copy_chunks(emit, target, place)
        return I64(block.fixed_bytes)
    before = block.variable_at_byte
    length = emit.builder.zext(variable_bytes(emit, place), I64)
    emit.copy(target, place.address, before)
    middle = emit.address(target, before)
    emit.copy(middle, emit.address(place.address, block.variable_offset), length)
    rest = emit.address(place.address, before)
    emit.copy(emit.address(middle, length), rest, block.fixed_bytes - before)
    return emit.builder.add(length, I64(block.fixed_bytes))
