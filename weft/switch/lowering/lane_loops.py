"""Emits runs of equal statements as loops, which LLVM vectorises."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.switch.bmv2json import FieldRef, PrimitiveCall
from weft.switch.lowering import registers
from weft.switch.lowering.emitter import I64, Emitter, Lane, Value
from weft.switch.lowering.expressions import lower_index
from weft.switch.lowering.fields import header_place, note_write
from weft.switch.lowering.runs import Run

EmitCalls = Callable[[Emitter, Sequence[PrimitiveCall], Value], None]


def emit_run(emit: Emitter, run: Run, emit_calls: EmitCalls) -> None:
    """Emit all repetitions of a run; `emit_calls` emits one repetition, then a branch to the block it is given.

    One check decides whether all register indices are in range. If so, the repetitions of the loop are independent;
    otherwise another loop checks each read and write.
    """
    for header in {place.header for place in run.written() if place in run.strides}:
        note_write(emit, header_place(emit, header))
    inside = _all_inside(emit, run)
    if inside is None:
        _loop(emit, run, emit_calls, inside=True)
        return
    fast, slow, done = (emit.block(name) for name in ("in_range", "out_of_range", "repeated"))
    emit.builder.cbranch(inside, fast, slow)
    for block, is_inside in ((fast, True), (slow, False)):
        emit.continue_in(block)
        _loop(emit, run, emit_calls, inside=is_inside)
        emit.builder.branch(done)
    emit.continue_in(done)


def _all_inside(emit: Emitter, run: Run) -> Value | None:
    """Return whether all indices are in range (i1); None if they always are."""
    result: Value | None = None
    for size, index in {(emit.shared.registers[name].size, index) for name, index in run.registers()}:
        value = lower_index(emit, index)
        if not registers.may_be_outside(size, value):
            continue
        this = registers.in_range(emit, size, value)
        result = this if result is None else emit.builder.and_(result, this)
    return result


def _loop(emit: Emitter, run: Run, emit_calls: EmitCalls, *, inside: bool) -> None:
    before = emit.builder.block
    body, following, done = (emit.block(name) for name in ("lane", "next_lane", "lanes_done"))
    emit.fall_into(body)
    number = emit.builder.phi(I64)
    number.add_incoming(I64(0), before)
    fields = {place: stride for place, stride in run.strides.items() if isinstance(place, FieldRef)}
    arrays = {place.name: stride for place, stride in run.strides.items() if not isinstance(place, FieldRef)}
    emit.lane = Lane(number, fields, arrays, inside)
    emit_calls(emit, run.body, following)
    emit.lane = None
    emit.continue_in(following)
    after = emit.builder.add(number, I64(1))
    number.add_incoming(after, following)
    emit.builder.cbranch(emit.builder.icmp_unsigned("<", after, I64(run.count)), body, done)
    emit.continue_in(done)
