"""The primitives that actions (and parser states and deparsers) call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from weft.switch.bmv2json import (
    CalculationRef,
    Constant,
    CounterArrayRef,
    Expression,
    Kind,
    MeterArrayRef,
    Operation,
    ParametersVector,
    PrimitiveCall,
    RegisterArrayRef,
    StringLiteral,
)
from weft.switch.lowering import fields, registers, stacks
from weft.switch.lowering.calculations import hash_calculation, scaled
from weft.switch.lowering.emitter import I32, I64, POINTER, VOID, Emitter, Value
from weft.switch.lowering.errors import UnsupportedError
from weft.switch.lowering.expressions import (
    lower,
    lower_bool,
    lower_condition,
    lower_header,
    lower_index,
    lower_union,
    lvalue,
)
from weft.switch.lowering.intrinsics import write_intrinsic
from weft.switch.lowering.lane_loops import emit_run
from weft.switch.lowering.runs import find_runs
from weft.switch.lowering.tracing import PrimitiveReport


def emit_primitives(emit: Emitter, calls: Sequence[PrimitiveCall], end: Value) -> None:
    """Emit `calls` in order, including jumps, then a branch to `end`. UnsupportedError names the primitive.

    Runs of equal calls become loops, except in instrumented code and within such a loop.
    """
    plain = emit.shared.places is None and emit.lane is None
    runs = find_runs(calls, emit.layout.blocks, emit.shared.registers) if plain else {}
    repeated = {index for run in runs.values() for index in range(run.start, run.end)}
    targets = {
        _jump_target(call, len(calls))
        for index, call in enumerate(calls)
        if call.name in ("_jump", "_jump_if_zero") and index not in repeated
    }
    blocks = {index: emit.block(f"primitive_{index}") for index in sorted(targets) if index < len(calls)}
    blocks[len(calls)] = end
    for index, call in enumerate(calls):
        if index in repeated and index not in runs:
            continue
        if index in blocks:
            # A jump to the next call has already continued in that call's block.
            if emit.builder.block is not blocks[index]:
                if not emit.builder.block.is_terminated:
                    emit.builder.branch(blocks[index])
                emit.continue_in(blocks[index])
        elif emit.builder.block.is_terminated:
            continue  # behind an unconditional jump or an exit, and no jump leads here
        if index in runs:
            emit_run(emit, runs[index], emit_primitives)
        else:
            _emit_call(emit, call, index, len(calls), blocks, end)
    if not emit.builder.block.is_terminated:
        emit.builder.branch(end)


def _jump_target(call: PrimitiveCall, count: int) -> int:
    target = call.arguments[-1]
    if not isinstance(target, Constant) or not 0 <= target.value <= count:
        raise UnsupportedError(f"'{call.name}' to a place that is not a constant index of the action")
    return target.value


def _emit_call(
    emit: Emitter, call: PrimitiveCall, index: int, count: int, blocks: dict[int, Value], end: Value
) -> None:
    try:
        report = PrimitiveReport(emit, call)
        if call.name in ("exit", "_jump_if_zero", "assert", "assume"):
            report.finish()  # now: the call may go elsewhere
        match call.name:
            case "_jump":
                _jump(emit, index, _jump_target(call, count), blocks, end)
            case "_jump_if_zero":
                # Not the end itself, to which the last call branches.
                behind = blocks.get(index + 1) if index + 1 < count else None
                following = behind or emit.block("following")
                away = emit.block("jump")
                emit.builder.cbranch(lower_condition(emit, _data(call, 0)), following, away)
                emit.continue_in(away)
                _jump(emit, index, _jump_target(call, count), blocks, end)
                emit.continue_in(following)
            case "exit":
                emit.store_state("exit_requested", I32(1))
                emit.builder.branch(end)
            case "assert" | "assume":
                _assertion(emit, call, end)
            case _:
                _SIMPLE[call.name](emit, call)
                report.finish()
    except UnsupportedError as error:
        place = f" ({call.source})" if call.source else ""
        raise UnsupportedError(error, place=f"primitive '{call.name}'{place}") from None
    except KeyError:
        raise UnsupportedError(f"primitive '{call.name}'") from None


def _jump(emit: Emitter, index: int, target: int, blocks: dict[int, Value], end: Value) -> None:
    """Branch from call `index` to `target`; a packet is dropped after too many backward jumps."""
    if target <= index:
        budget = emit.load_state("loop_budget")
        again, exhausted = emit.block("again"), emit.block("loop_limit")
        emit.builder.cbranch(emit.builder.icmp_unsigned("!=", budget, I32(0)), again, exhausted)
        emit.continue_in(exhausted)
        _abort(emit, "kLoopLimit", end)
        emit.continue_in(again)
        emit.store_state("loop_budget", emit.builder.sub(budget, I32(1)))
    emit.builder.branch(blocks[target])


def _abort(emit: Emitter, reason: str, end: Value) -> None:
    emit.store_state("abort_reason", I32(emit.shared.abi[reason]))
    emit.store_state("exit_requested", I32(1))
    emit.builder.branch(end)


def may_leave_early(calls: Sequence[PrimitiveCall]) -> bool:
    """True if the primitives may end the whole pipeline."""
    return any(
        call.name in ("exit", "assert", "assume")
        or (call.name in ("_jump", "_jump_if_zero") and _jump_target(call, len(calls)) <= index)
        for index, call in enumerate(calls)
    )


def _data(call: PrimitiveCall, index: int) -> Expression:
    return cast(Expression, call.arguments[index])


def _assertion(emit: Emitter, call: PrimitiveCall, end: Value) -> None:
    holds, failed = emit.block("holds"), emit.block("assertion_failed")
    emit.builder.cbranch(lower_condition(emit, _data(call, 0)), holds, failed)
    emit.continue_in(failed)
    _log(emit, call.assertion_message(), ())
    _abort(emit, "kAssertionFailed", end)
    emit.continue_in(holds)


# ---- assignments


def _assign(emit: Emitter, call: PrimitiveCall) -> None:
    assign(emit, _data(call, 0), _data(call, 1))


def assign(emit: Emitter, target: Expression, source: Expression) -> None:
    """Store the value of `source`, cut to the field's width."""
    place = lvalue(emit, target)
    width = place.slot.width_bits if place.slot is not None else 1
    if source.kind is Kind.BOOL:
        fields.store_field(emit, place, emit.resize(lower_bool(emit, source), width))
    else:
        fields.store_field(emit, place, lower(emit, source, width))


def _assign_variable(emit: Emitter, call: PrimitiveCall) -> None:
    target, source = lvalue(emit, _data(call, 0)), lvalue(emit, _data(call, 1))
    blocks = target.header.block, source.header.block
    if not all(place.slot is not None and place.slot.variable for place in (target, source)):
        raise UnsupportedError("operands that are not variable-length fields")
    if blocks[0].variable_bytes != blocks[1].variable_bytes:
        raise UnsupportedError("variable-length fields of different sizes")
    bases = [emit.address(place.header.address, blocks[0].variable_offset) for place in (target, source)]
    bases[1] = emit.address(source.header.address, blocks[1].variable_offset)
    fields.note_write(emit, target.header)
    emit.copy(bases[0], bases[1], blocks[0].variable_bytes)
    length = emit.load(emit.address(source.header.address, blocks[1].length_offset), I32, 4)
    emit.store(length, emit.address(target.header.address, blocks[0].length_offset), 4)


def _arithmetic(operator: str) -> Callable[[Emitter, PrimitiveCall], None]:
    def emit_arithmetic(emit: Emitter, call: PrimitiveCall) -> None:
        operands = tuple(_data(call, i) for i in range(len(call.arguments)))[-2:]
        assign(emit, _data(call, 0), Operation(operator, operands, Kind.DATA))

    return emit_arithmetic


# ---- headers


def _assign_header(emit: Emitter, call: PrimitiveCall) -> None:
    fields.copy_header(emit, lower_header(emit, _data(call, 0)), lower_header(emit, _data(call, 1)))


def _assign_union(emit: Emitter, call: PrimitiveCall) -> None:
    targets, sources = lower_union(emit, _data(call, 0)), lower_union(emit, _data(call, 1))
    _copy_blocks(emit, [targets], [sources])


def _assign_stack(emit: Emitter, call: PrimitiveCall) -> None:
    target, source = (stacks.of_expression(emit, _data(call, i)) for i in range(2))
    _copy_blocks(emit, stacks.elements(emit, target), stacks.elements(emit, source))
    stacks.set_next_index(emit, target, stacks.next_index(emit, source))


def _copy_blocks(
    emit: Emitter,
    targets: Sequence[tuple[fields.HeaderPlace, ...]],
    sources: Sequence[tuple[fields.HeaderPlace, ...]],
) -> None:
    for target_places, source_places in zip(targets, sources, strict=True):
        for target, source in zip(target_places, source_places, strict=True):
            fields.copy_header(emit, fields.HeaderPlace(target.block, target.address), source)


def _add_header(emit: Emitter, call: PrimitiveCall) -> None:
    place = lower_header(emit, _data(call, 0))
    if not place.block.wire:
        return
    with emit.when(emit.builder.not_(fields.is_valid(emit, place))):
        fields.clear_fields(emit, place)
        fields.set_valid(emit, place)
        length = emit.builder.add(emit.load_state("packet_length_bytes"), fields.header_bytes(emit, place))
        emit.store_state("packet_length_bytes", length)


def _remove_header(emit: Emitter, call: PrimitiveCall) -> None:
    place = lower_header(emit, _data(call, 0))
    if not place.block.wire:
        return
    with emit.when(fields.is_valid(emit, place)):
        length = emit.builder.sub(emit.load_state("packet_length_bytes"), fields.header_bytes(emit, place))
        emit.store_state("packet_length_bytes", length)
        fields.set_invalid(emit, place)


def _move_stack(move: Callable[[Emitter, Any, int], None]) -> Callable[[Emitter, PrimitiveCall], None]:
    def emit_move(emit: Emitter, call: PrimitiveCall) -> None:
        count = call.arguments[1]
        if not isinstance(count, Constant):
            raise UnsupportedError("a count that is not constant")
        move(emit, stacks.of_expression(emit, _data(call, 0)), count.value)

    return emit_move


# ---- where the packet goes


def _drop(emit: Emitter, _call: PrimitiveCall) -> None:
    write_intrinsic(emit, "standard_metadata.egress_spec", emit.load_context("drop_port", I32))
    write_intrinsic(emit, "intrinsic_metadata.mcast_grp", I32(0))


def _clone(emit: Emitter, call: PrimitiveCall) -> None:
    session = emit.builder.and_(lower(emit, _data(call, 0), 32), I32(0x7FFF))
    flag = I32(emit.shared.abi["kCloneRequested"])
    emit.store_state("clone_session", emit.builder.or_(session, flag))
    emit.store_state("clone_field_list", lower(emit, _data(call, 1), 32))


def _request(member: str) -> Callable[[Emitter, PrimitiveCall], None]:
    def emit_request(emit: Emitter, call: PrimitiveCall) -> None:
        emit.store_state(member, lower(emit, _data(call, len(call.arguments) - 1), 32))

    return emit_request


def _truncate(emit: Emitter, call: PrimitiveCall) -> None:
    length, have = lower(emit, _data(call, 0), 32), emit.load_state("truncated_length_bytes")
    smaller = emit.builder.icmp_unsigned("<", length, have)
    emit.store_state("truncated_length_bytes", emit.builder.select(smaller, length, have))


# ---- stateful objects


def _count(emit: Emitter, call: PrimitiveCall) -> None:
    name = cast(CounterArrayRef, call.arguments[0]).name
    array = emit.program.counter_arrays[name]
    if array.table is not None:
        return  # a direct counter counts where its table is applied
    index = lower_index(emit, _data(call, 1))
    with emit.when(registers.in_range(emit, array.size, index)):
        cell = emit.builder.add(emit.resize(index, 64), I64(emit.shared.counter_offsets[name]))
        offset = emit.builder.mul(cell, I64(emit.shared.abi["sizeof(CounterCell)"]))
        counters_bytes = emit.shared.counter_count * emit.shared.abi["sizeof(CounterCell)"]
        counters = emit.extent(emit.load_context("counters"), counters_bytes, "the counters")
        count_packet(emit, emit.address(counters, offset))


def count_packet(emit: Emitter, cell: Value) -> None:
    """Count the packet, with its size on arrival, in a CounterCell."""
    for member, increment in (("packets", _packets(emit)), ("bytes", _wire_bytes(emit))):
        address = emit.address(cell, emit.shared.abi[f"CounterCell.{member}"])
        emit.store(emit.builder.add(emit.load(address, I64, 8), increment), address, 8)


def _packets(emit: Emitter) -> Value:
    """Return how many packets (i64) this one stands for."""
    return emit.builder.zext(emit.load_state("packets"), I64)


def _wire_bytes(emit: Emitter) -> Value:
    """Return the packet's bytes on arrival (i64), including payload zeros that are not stored."""
    there = emit.builder.add(emit.load_state("size_bytes"), emit.load_state("virtual_bytes"))
    return emit.builder.mul(emit.builder.zext(there, I64), _packets(emit))


def _execute_meter(emit: Emitter, call: PrimitiveCall) -> None:
    name = cast(MeterArrayRef, call.arguments[0]).name
    array = emit.program.meter_arrays[name]
    index = lower_index(emit, _data(call, 1))
    target = lvalue(emit, _data(call, 2))
    with emit.when(registers.in_range(emit, array.size, index)):
        cell = emit.builder.add(emit.resize(index, 64), I64(emit.shared.meter_offsets[name]))
        emit.check_index(cell, emit.shared.meter_count, "the meters")
        meter = emit.call_runtime("weft_meter_at", POINTER, emit.context, cell)
        colour = meter_colour(emit, meter, array.counts_bytes)
        assert target.slot is not None
        fields.store_field(emit, target, emit.resize(colour, target.slot.width_bits))


def meter_colour(emit: Emitter, meter: Value, counts_bytes: bool) -> Value:
    """Colour of the packet (i32: 0 green, 1 yellow, 2 red) by a Meter*, which may be null (green)."""
    size_bytes = _wire_bytes(emit)
    units = size_bytes if counts_bytes else _packets(emit)
    now_ps = emit.load_context("now_ps", I64)
    return emit.call_runtime("weft_meter_execute", I32, meter, units, size_bytes, now_ps)


def _register_read(emit: Emitter, call: PrimitiveCall) -> None:
    name = cast(RegisterArrayRef, call.arguments[1]).name
    target = lvalue(emit, _data(call, 0))
    index = lower_index(emit, _data(call, 2))
    assert target.slot is not None
    value = emit.resize(registers.read(emit, name, index), target.slot.width_bits)
    size = emit.program.register_arrays[name].size
    if not registers.is_inside(emit, size, index):
        value = emit.builder.select(registers.in_range(emit, size, index), value, fields.load_field(emit, target))
    fields.store_field(emit, target, value)


def _register_write(emit: Emitter, call: PrimitiveCall) -> None:
    name = cast(RegisterArrayRef, call.arguments[0]).name
    width = emit.program.register_arrays[name].width_bits
    registers.write(emit, name, lower_index(emit, _data(call, 1)), lower(emit, _data(call, 2), width))


def _random(emit: Emitter, call: PrimitiveCall) -> None:
    target = lvalue(emit, _data(call, 0))
    low, high = lower(emit, _data(call, 1), 64), lower(emit, _data(call, 2), 64)
    assert target.slot is not None
    with emit.when(emit.builder.icmp_unsigned("<=", low, high)):
        value = emit.call_runtime("weft_random_between", I64, emit.context, low, high)
        fields.store_field(emit, target, emit.resize(value, target.slot.width_bits))


def _hash(emit: Emitter, call: PrimitiveCall) -> None:
    calculation = emit.program.calculations[cast(CalculationRef, call.arguments[2]).name]
    base, size = lower(emit, _data(call, 1), 64), lower(emit, _data(call, 3), 64)
    value = scaled(emit, hash_calculation(emit, calculation), base, size)
    target = lvalue(emit, _data(call, 0))
    assert target.slot is not None
    fields.store_field(emit, target, emit.resize(value, target.slot.width_bits))


def _log_message(emit: Emitter, call: PrimitiveCall) -> None:
    text = cast(StringLiteral, call.arguments[0]).value
    _log(emit, text, cast(ParametersVector, call.arguments[1]).elements)


def _log(emit: Emitter, text: str, values: Sequence[Expression]) -> None:
    """Log a text with values for its `{}`, if logging is enabled."""
    formats = emit.shared.log_formats
    formats.append(text)
    enabled = emit.builder.icmp_unsigned("!=", emit.load_context("log_enabled", I32), I32(0))
    with emit.when(enabled, likely=False):
        # Every value is a signed number with as many words as the widest needs.
        bits = max((emit.shared.ranges.of(value).bits for value in values), default=0) + 1
        words = (bits + 63) // 64
        array = emit.local(8 * words * max(len(values), 1))
        for position, value in enumerate(values):
            emit.store(lower(emit, value, 64 * words), emit.address(array, position * words * 8), 8)
        arguments = (emit.context, I32(len(formats) - 1), array, I32(len(values)), I32(words))
        emit.call_runtime("weft_log_message", VOID, *arguments)


def _no_op(_emit: Emitter, _call: PrimitiveCall) -> None:
    return


_SIMPLE: dict[str, Callable[[Emitter, PrimitiveCall], None]] = {
    "assign": _assign,
    "modify_field": _assign,
    "assign_VL": _assign_variable,
    "assign_header": _assign_header,
    "copy_header": _assign_header,
    "assign_union": _assign_union,
    "assign_header_stack": _assign_stack,
    "assign_union_stack": _assign_stack,
    "add_header": _add_header,
    "remove_header": _remove_header,
    "push": _move_stack(stacks.push),
    "pop": _move_stack(stacks.pop),
    "add_to_field": _arithmetic("+"),
    "subtract_from_field": _arithmetic("-"),
    "add": _arithmetic("+"),
    "subtract": _arithmetic("-"),
    "bit_xor": _arithmetic("^"),
    "bit_or": _arithmetic("|"),
    "bit_and": _arithmetic("&"),
    "shift_left": _arithmetic("<<"),
    "shift_right": _arithmetic(">>"),
    "drop": _drop,
    "mark_to_drop": _drop,
    "no_op": _no_op,
    "truncate": _truncate,
    "clone_ingress_pkt_to_egress": _clone,
    "clone_egress_pkt_to_egress": _clone,
    "resubmit": _request("resubmit_field_list"),
    "recirculate": _request("recirculate_field_list"),
    "generate_digest": _request("digest_list"),
    "count": _count,
    "execute_meter": _execute_meter,
    "register_read": _register_read,
    "register_write": _register_write,
    "modify_field_rng_uniform": _random,
    "modify_field_with_hash_based_offset": _hash,
    "log_msg": _log_message,
}
