"""Lowers a whole program to one LLVM module, with the description that the C++ runtime needs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from weft.engine import _core
from weft.errors import translated
from weft.switch.bmv2json import Constant, Deparser, FieldList, FieldRef, MatchKind, Parser, Program, Table
from weft.switch.drop_sites import drop_sites
from weft.switch.lowering import bounds, checksums, intrinsics
from weft.switch.lowering.assumptions import Assumptions
from weft.switch.lowering.deparser import emit_deparser, emit_finish, emit_in_place
from weft.switch.lowering.emitter import I32, I64, POINTER, VOID, Emitter, ModuleContext, Value
from weft.switch.lowering.errors import UnsupportedError
from weft.switch.lowering.expressions import lower
from weft.switch.lowering.fields import field_place, load_field, store_big_endian, store_field
from weft.switch.lowering.in_place import headers_in_place
from weft.switch.lowering.layout import (
    action_data_layout,
    bytes_for,
    key_bytes,
    key_offsets,
    state_layout,
)
from weft.switch.lowering.parser import ParserLowering
from weft.switch.lowering.pipeline import Actions, PipelineLowering, mark_arguments
from weft.switch.lowering.ranges import RangeAnalysis
from weft.switch.lowering.register_layout import RegisterLayout, register_layouts
from weft.switch.lowering.shape import ProgramShape
from weft.switch.lowering.temporaries import called_once, temporaries
from weft.switch.trace.places import Places

CLEAR_PIECE_BYTES = 256
"""Largest piece that LLVM always clears by stores; for more it calls the C library."""

PORT_NUMBERS = 512
"""Number of v1model's ports. An array of this size is assumed to be per port, and cells of existing ports are
prefetched."""


@dataclass(frozen=True, slots=True)
class LoweredProgram:
    """IR text, and its description for the C++ runtime and the backend."""

    ir_text: str
    shape: ProgramShape


def lower_program(
    program: Program, *, instrumented: bool = False, counts: str | None = None, assumed: Assumptions | None = None
) -> LoweredProgram:
    """Lower `program`. Raises UnsupportedError, with the place, for features that the native switch lacks.

    An `instrumented` program reports its steps to a trace; it has the same shape as the plain one. With `counts`, a
    symbol, it counts its places there instead. Code that has `assumed` contents of tables is right only as long as they
    hold; its shape is that of the plain program, but for the tables that it looks up.
    """
    abi = _core.switch_abi()
    found = temporaries(program)
    with translated(ValueError, UnsupportedError):
        layout = state_layout(program, abi["kProgramStateOffset"], found.kinds)
    registers, registers_bytes = register_layouts(program)
    counters = _offsets({name: item.size for name, item in program.counter_arrays.items() if item.table is None})
    meters = _offsets({name: item.size for name, item in program.meter_arrays.items() if item.table is None})
    shared = ModuleContext(
        program=program,
        abi=abi,
        layout=layout,
        module=ir.Module("weft_program"),
        ranges=RangeAnalysis(program),
        registers=registers,
        registers_bytes=registers_bytes,
        counter_offsets=counters[0],
        counter_count=counters[1],
        meter_offsets=meters[0],
        meter_count=meters[1],
        value_set_indices={name: index for index, name in enumerate(program.value_sets)},
        called_once=called_once(program),
        zeroed=found.zeroed,
        action_data={action.id: action_data_layout(action) for action in program.actions.values()},
        log_formats=[],
        checked=bounds.requested(),
        places=Places(program) if instrumented or counts is not None else None,
        drop_sites={key: number for number, key in enumerate(drop_sites(program), 1)},
        counts=counts,
        assumed=assumed,
    )
    if assumed is None:
        _emit_functions(shared)
    else:
        shared.in_place = headers_in_place(_parser(program), _deparser(program), layout, abi["kPositions"])
        _emit_usual_way(shared)
    runtime = {
        "cleared_bytes": layout.cleared_bytes,
        "large_apart_bytes": layout.large_apart_bytes,
        "large_parts_bytes": layout.large_parts_bytes,
        "metadata_offset_bytes": layout.metadata_offset_bytes,
        "metadata_bytes": layout.metadata_bytes,
        "max_headers_bytes": _max_headers_bytes(shared),
        "max_digest_bytes": max((_digest_bytes(item) for item in program.learn_lists.values()), default=0),
        "max_action_data_bytes": max((item.size_bytes for item in shared.action_data.values()), default=0),
        "tables": _table_shapes(program, assumed),
        "action_profile_count": len(program.action_profiles),
        "registers_bytes": registers_bytes,
        "counter_count": counters[1],
        "port_counters": [
            (counters[0][name] * abi["sizeof(CounterCell)"], abi["sizeof(CounterCell)"])
            for name, item in program.counter_arrays.items()
            if item.table is None and item.size == PORT_NUMBERS
        ],
        "port_registers": _port_registers(registers.values()),
        "meter_count": meters[1],
        "value_set_count": len(program.value_sets),
        "log_formats": shared.log_formats,
    }
    return LoweredProgram(str(shared.module), ProgramShape(runtime, registers, counters[0], meters[0]))


def _port_registers(registers: Iterable[RegisterLayout]) -> list[tuple[int, int]]:
    """Return the start of each register array with a cell per port, and the distance of its cells.

    Interleaved arrays count once, as fetching a cell of one fetches the others.
    """
    first: dict[int, int] = {}
    for each in registers:
        if each.size == PORT_NUMBERS:
            first[each.group_bytes] = each.stride_bytes
    return list(first.items())


def _offsets(sizes: dict[str, int]) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    total = 0
    for name, size in sizes.items():
        offsets[name] = total
        total += size
    return offsets, total


def _table_shapes(program: Program, assumed: Assumptions | None) -> list[dict[str, Any]]:
    profiles = {name: index for index, name in enumerate(program.action_profiles)}
    return [
        {
            "name": table.name,
            **_reads(table, assumed),
            "key_bytes": key_bytes(table),
            "ranges": [
                (offset, bytes_for(key.field.width_bits))
                for key, offset in zip(table.key, key_offsets(table), strict=True)
                if key.kind is MatchKind.RANGE
            ],
            "action_profile": profiles[table.action_profile] if table.action_profile is not None else -1,
            "action_data_bytes": _action_data_bytes(table),
        }
        for table in map(program.tables.__getitem__, program.table_numbers)
    ]


def _reads(table: Table, assumed: Assumptions | None) -> dict[str, bool]:
    """Return what code reads of a table: anything, the default entry, and its action."""
    always = None if assumed is None else assumed.default_of(table)
    looked_up = not table.has_fixed_action
    if always is None or assumed is None:
        action = looked_up and not table.misses_do_nothing
        entry = action or (looked_up and table.with_counters)
    else:
        action = looked_up and assumed.varies(always)
        looked_up = entry = looked_up and (action or table.with_counters)
    return {"looked_up": looked_up, "reads_default_entry": entry, "reads_default_action": action}


def _action_data_bytes(table: Table) -> int:
    """Return the most bytes that the data of an entry's direct action takes."""
    if table.action_profile is not None:
        return 0
    return max((action_data_layout(action).size_bytes for action in table.actions), default=0)


def _parser(program: Program) -> Parser | None:
    return program.parsers.get("parser") or next(iter(program.parsers.values()), None)


def _deparser(program: Program) -> Deparser | None:
    """Return the program's only deparser, None without one."""
    return next(iter(program.deparsers.values()), None)


def _max_headers_bytes(shared: ModuleContext) -> int:
    deparser = _deparser(shared.program)
    names = deparser.order if deparser is not None else ()
    return sum(shared.layout.blocks[name].max_wire_bytes for name in names)


# ---- functions


def _emit_functions(shared: ModuleContext) -> None:
    actions = Actions(shared)
    bodies: dict[str, Callable[[Emitter], None]] = {
        "parse": _parse,
        "ingress": lambda emit: _ingress(emit, actions),
        "egress": lambda emit: _egress(emit, actions),
        "set_metadata_again": _set_metadata_again,
        "finish": _finish,
    }
    for name, body in bodies.items():
        function = _function(shared, name, VOID, [POINTER, POINTER])
        body(Emitter(shared, function, function.args[0], function.args[1]))
    _deparse(shared)
    _clear(shared)
    _copy_fields(shared)
    _pack_digest(shared)


def _emit_usual_way(shared: ModuleContext) -> None:
    """Emit the two functions of specialised code; all else is left to the plain program's."""
    actions = Actions(shared)
    ingress = _part(shared, "ingress", lambda emit: _ingress(emit, actions))
    egress = _part(shared, "egress", lambda emit: _egress(emit, actions))
    finish = _part(shared, "finish", _finish)
    # After what writes to headers: the parser notes where those begin.
    in_place = shared.in_place
    known = [] if in_place is None else list(in_place.names)
    parse = _part(shared, "parse", _parse_new)
    if in_place is not None and in_place.names != known:  # a state assigns to a header, maybe one extracted before
        in_place.usable = False
    _arrive(shared, parse, ingress)
    _send(shared, egress, finish)


def _part(shared: ModuleContext, name: str, body: Callable[[Emitter], None]) -> Any:
    function = _function(shared, name, VOID, [POINTER, POINTER])
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    body(Emitter(shared, function, function.args[0], function.args[1]))
    return function


def _arrive(shared: ModuleContext, parse: Any, ingress: Any) -> None:
    """uint32_t arrive(PacketState*, SwitchContext*)."""
    function = _function(shared, "arrive", I32, [POINTER, POINTER])
    emit = Emitter(shared, function, *function.args)
    emit.call(parse, [emit.state, emit.context])
    failed = emit.builder.icmp_unsigned("!=", emit.load_state("parser_error"), I32(0))
    with emit.when(failed, likely=False):
        shortened = emit.builder.icmp_unsigned("!=", emit.load_state("virtual_bytes"), I32(0))
        with emit.when(shortened):
            emit.builder.ret(I32(shared.abi["kWriteOut"]))
    aborted = emit.builder.icmp_unsigned("!=", emit.load_state("abort_reason"), I32(0))
    with emit.when(aborted, likely=False):
        emit.builder.ret(I32(0))
    emit.call(ingress, [emit.state, emit.context])
    emit.builder.ret(I32(0))


def _send(shared: ModuleContext, egress: Any, finish: Any) -> None:
    """uint32_t send(PacketState*, SwitchContext*)."""
    function = _function(shared, "send", I32, [POINTER, POINTER])
    emit = Emitter(shared, function, *function.args)
    emit.call(egress, [emit.state, emit.context])
    asked = emit.builder.icmp_unsigned("==", emit.load_state("egress_spec"), emit.load_context("drop_port", I32))
    first = shared.abi["PacketState.multicast_group"]  # of what PacketState::asks_for_more() reads
    words = [
        emit.load(emit.address(emit.state, first + 8 * number), I64, 8) for number in range(shared.abi["kRequestWords"])
    ]
    more = emit.builder.icmp_unsigned("!=", functools.reduce(emit.builder.or_, words), I64(0))
    with emit.when(emit.builder.or_(asked, more), likely=False):
        emit.builder.ret(I32(shared.abi["kAsks"]))
    emit.call(finish, [emit.state, emit.context])
    in_place = shared.in_place
    if in_place is not None and in_place.usable:
        moved = emit.builder.icmp_unsigned("!=", emit.load_state("headers_moved"), I32(0))
        with emit.when(moved, likely=False):
            emit.builder.ret(I32(shared.abi["kMoved"]))
        emit_in_place(emit, in_place.names)
        emit.builder.ret(I32(shared.abi["kInPlace"]))
    else:
        emit.builder.ret(I32(shared.abi["kMoved"]))


def _function(shared: ModuleContext, name: str, result: Any, arguments: list[Any]) -> Any:
    function = ir.Function(shared.module, ir.FunctionType(result, arguments), name)
    mark_arguments(function)
    return function


def _deparse(shared: ModuleContext) -> None:
    """uint32_t deparse(PacketState*, uint8_t* room, uint32_t room_bytes)."""
    deparser = _deparser(shared.program)
    function = _function(shared, "deparse", I32, [POINTER, POINTER, I32])
    state, room, room_bytes = function.args
    emit = Emitter(shared, function, state, None)
    emit.extent(room, emit.builder.zext(room_bytes, I64), "the room for headers")
    emit_deparser(emit, deparser, room, room_bytes)


def _clear(shared: ModuleContext) -> None:
    """void clear(PacketState*): zeros the part of the state cleared for every packet, by vector stores."""
    function = _function(shared, "clear", VOID, [POINTER])
    emit = Emitter(shared, function, function.args[0], None)
    for at in range(0, shared.layout.cleared_bytes, CLEAR_PIECE_BYTES):
        size = min(CLEAR_PIECE_BYTES, shared.layout.cleared_bytes - at)
        emit.clear(emit.address(emit.state, at), size, whole=False)
    emit.builder.ret_void()


def _parse(emit: Emitter) -> None:
    newly_arrived = emit.builder.icmp_unsigned("==", emit.load_state("instance_type"), I32(0))
    with emit.when(newly_arrived, likely=True):
        intrinsics.take_in(emit, intrinsics.INGRESS_INPUT)
    _run_parser(emit)


def _parse_new(emit: Emitter) -> None:
    intrinsics.take_in(emit, intrinsics.INGRESS_INPUT)
    _run_parser(emit)


def _run_parser(emit: Emitter) -> None:
    parser = _parser(emit.program)
    if parser is None:
        emit.builder.ret_void()
        return
    ParserLowering(emit, parser).run()


def _finish(emit: Emitter) -> None:
    emit_finish(emit, _deparser(emit.program))


def _set_metadata_again(emit: Emitter) -> None:
    intrinsics.take_in(emit, intrinsics.AGAIN_INPUT)
    emit.builder.ret_void()


def _ingress(emit: Emitter, actions: Actions) -> None:
    checksums.verify(emit)
    intrinsics.take_in(emit, intrinsics.PARSER_RESULT)
    _pipeline(emit, "ingress", actions)
    intrinsics.hand_out(emit, intrinsics.INGRESS_OUTPUT)
    emit.builder.ret_void()


def _egress(emit: Emitter, actions: Actions) -> None:
    intrinsics.take_in(emit, intrinsics.EGRESS_INPUT)
    _pipeline(emit, "egress", actions)
    intrinsics.hand_out(emit, intrinsics.EGRESS_OUTPUT)
    emit.builder.ret_void()


def _pipeline(emit: Emitter, name: str, actions: Actions) -> None:
    pipeline = emit.program.pipelines.get(name)
    if pipeline is None:
        return
    PipelineLowering(emit, pipeline, actions, emit.block("pipeline_end")).run()


def _by_list(
    shared: ModuleContext, function: Any, number: Value, lists: dict[int, FieldList], emit: Emitter
) -> dict[int, Value]:
    """A switch over `number` with one block per list; the default returns."""
    nothing = emit.block("unknown")
    choice = emit.builder.switch(number, nothing)
    blocks = {}
    for list_id in lists:
        blocks[list_id] = emit.block(f"list_{list_id}")
        choice.add_case(I32(list_id), blocks[list_id])
    emit.continue_in(nothing)
    if isinstance(function.function_type.return_type, ir.VoidType):
        emit.builder.ret_void()
    else:
        emit.builder.ret(I32(0))
    return blocks


def _copy_fields(shared: ModuleContext) -> None:
    """void copy_fields(PacketState* to, const PacketState* from, uint32_t field_list)"""
    function = _function(shared, "copy_fields", VOID, [POINTER, POINTER, I32])
    emit = Emitter(shared, function, function.args[0], None)
    emit.extent(function.args[1], shared.layout.size_bytes, "the previous state")
    blocks = _by_list(shared, function, function.args[2], dict(shared.program.field_lists), emit)
    for list_id, block in blocks.items():
        emit.continue_in(block)
        field_list = shared.program.field_lists[list_id]
        for element in field_list.elements:
            if not isinstance(element, FieldRef) or element.is_validity:
                raise UnsupportedError(f"field list '{field_list.name}': an element that is no field")
            emit.state = function.args[1]
            value = load_field(emit, field_place(emit, element))
            emit.state = function.args[0]
            store_field(emit, field_place(emit, element), value)
        emit.builder.ret_void()


def _digest_bytes(learn_list: FieldList) -> int:
    return sum(bytes_for(digest_element_bits(learn_list, element)) for element in learn_list.elements)


def digest_element_bits(learn_list: FieldList, element: Any) -> int:
    """Width of an element of a digest. UnsupportedError for one without a width."""
    width = getattr(element, "width_bits", None)
    if width is None:
        raise UnsupportedError(f"learn list '{learn_list.name}': an element without a width")
    return int(width)


def _pack_digest(shared: ModuleContext) -> None:
    """uint32_t pack_digest(const PacketState*, uint32_t learn_list, uint8_t* out): elements padded to whole
    bytes.
    """
    function = _function(shared, "pack_digest", I32, [POINTER, I32, POINTER])
    emit = Emitter(shared, function, function.args[0], None)
    blocks = _by_list(shared, function, function.args[1], dict(shared.program.learn_lists), emit)
    for list_id, block in blocks.items():
        emit.continue_in(block)
        learn_list = shared.program.learn_lists[list_id]
        emit.extent(function.args[2], _digest_bytes(learn_list), f"the buffer for digest {list_id}")
        position = 0
        for element in learn_list.elements:
            if not isinstance(element, FieldRef | Constant):
                raise UnsupportedError(f"learn list '{learn_list.name}': an element that is no field")
            width = digest_element_bits(learn_list, element)
            store_big_endian(emit, lower(emit, element, width), emit.address(function.args[2], position))
            position += bytes_for(width)
        emit.builder.ret(I32(position))
