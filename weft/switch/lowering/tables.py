"""Applies a table: key, lookup, counters and meters, and the choice of the action."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.switch.bmv2json import MatchKind, Table, TableType
from weft.switch.lowering.calculations import hash_of
from weft.switch.lowering.emitter import I32, I64, POINTER, Emitter, Value, constant
from weft.switch.lowering.fields import field_place, is_valid, load_field, store_field
from weft.switch.lowering.layout import bytes_for, key_bytes, key_offsets
from weft.switch.lowering.primitives import count_packet, meter_colour
from weft.switch.lowering.tracing import report_lookup

KEY_REGISTERS = 2
"""Most words of a key passed to the runtime in registers."""


@dataclass(frozen=True, slots=True)
class TableResult:
    """Result of a lookup: whether an entry matched (i1), and the ActionData* to execute."""

    hit: Value
    action: Value


def apply_table(emit: Emitter, table: Table, missed: Value | None = None) -> TableResult:
    """Look the packet up, count and meter it. Without a match, continue in `missed` if it is a block."""
    view = _view(emit, table)
    default = _default_entry(emit, view)
    if not table.key:
        report_lookup(emit, table, view, None, POINTER(None))
        _after_lookup(emit, table, default, constant(1, 0))
        return TableResult(constant(1, 0), _action_of(emit, table, default, default))
    found = _look_up(emit, table, view)
    if emit.shared.places is not None:
        report_lookup(emit, table, view, _key(emit, table), found)
    hit = emit.builder.icmp_unsigned("!=", found, POINTER(None))
    if missed is None:
        entry = emit.builder.select(hit, found, default)
    else:
        entry, matched = found, emit.block("matched")
        emit.builder.cbranch(hit, matched, missed)
        emit.continue_in(matched)
        hit = constant(1, 1)
    emit.extent(entry, emit.shared.abi["sizeof(EntryView)"], "an entry")
    _after_lookup(emit, table, entry, hit)
    return TableResult(hit, _action_of(emit, table, entry, default))


def count_miss(emit: Emitter, table: Table) -> None:
    """Count the packet at the default entry."""
    default = _default_entry(emit, _view(emit, table))
    count_packet(emit, emit.address(default, emit.shared.abi["EntryView.counter"]))


def default_arguments(emit: Emitter, table: Table) -> Value:
    """The address of the data of the default entry's action."""
    default = _default_entry(emit, _view(emit, table))
    action = emit.load(emit.address(default, emit.shared.abi["EntryView.action"]), POINTER, 8)
    emit.extent(action, emit.shared.abi["sizeof(ActionData)"], "the default entry's action")
    return action_arguments(emit, action)


def _view(emit: Emitter, table: Table) -> Value:
    """The table's TableView."""
    view_bytes = emit.shared.abi["sizeof(TableView)"]
    views = emit.extent(emit.load_context("tables"), len(emit.program.tables) * view_bytes, "the tables")
    return emit.address(views, emit.program.table_numbers[table.name] * view_bytes)


def _default_entry(emit: Emitter, view: Value) -> Value:
    default = emit.load(emit.address(view, emit.shared.abi["TableView.default_entry"]), POINTER, 8)
    return emit.extent(default, emit.shared.abi["sizeof(EntryView)"], "the default entry")


def _look_up(emit: Emitter, table: Table, view: Value) -> Value:
    """Return the matching entry or null. An empty table costs one load."""
    before = emit.builder.block
    lookup, done = emit.block("lookup"), emit.block("looked_up")
    count = emit.load(emit.address(view, emit.shared.abi["TableView.entry_count"]), I64, 8)
    emit.builder.cbranch(emit.builder.icmp_unsigned("!=", count, I64(0)), lookup, done)
    emit.continue_in(lookup)
    words = _words(table)
    if words <= KEY_REGISTERS:
        found = emit.call_runtime(f"weft_table_lookup_{words}", POINTER, view, *_key_in_registers(emit, table))
    else:
        found = emit.call_runtime("weft_table_lookup", POINTER, view, _key(emit, table))
    after = emit.builder.block
    emit.fall_into(done)
    entry = emit.builder.phi(POINTER)
    entry.add_incoming(POINTER(None), before)
    entry.add_incoming(found, after)
    return entry


def _words(table: Table) -> int:
    return (key_bytes(table) + 7) // 8


def _key_fields(emit: Emitter, table: Table) -> Iterator[tuple[int, Value]]:
    """Yield each field's offset in the key and its bytes as a native integer; fields of invalid headers are 0."""
    for field, offset in zip(table.key, key_offsets(table), strict=True):
        place = field_place(emit, field.field)
        value = load_field(emit, place)
        width = value.type.width
        if field.kind is not MatchKind.VALID and place.slot is not None and place.header.block.wire:
            value = emit.builder.select(is_valid(emit, place.header), value, constant(width, 0))
        if field.mask is not None:
            value = emit.builder.and_(value, constant(width, field.mask))
        yield offset, emit.swap_bytes(emit.resize(value, bytes_for(width) * 8))


def _key(emit: Emitter, table: Table) -> Value:
    """The key in memory, in whole words."""
    words = _words(table)
    key = emit.local(words * 8)
    emit.store(I64(0), emit.address(key, (words - 1) * 8), 8)
    for offset, value in _key_fields(emit, table):
        emit.store(value, emit.address(key, offset))
    return key


def _key_in_registers(emit: Emitter, table: Table) -> list[Value]:
    """Return the key's words; reading them back after writing fields to memory would stall."""
    width = _words(table) * 64
    key = constant(width, 0)
    for offset, value in _key_fields(emit, table):
        moved = emit.builder.shl(emit.resize(value, width), constant(width, offset * 8))
        key = emit.builder.or_(key, moved)
    return [emit.resize(emit.builder.lshr(key, constant(width, at)), 64) for at in range(0, width, 64)]


def _after_lookup(emit: Emitter, table: Table, entry: Value, hit: Value) -> None:
    abi = emit.shared.abi
    if table.with_counters:
        count_packet(emit, emit.address(entry, abi["EntryView.counter"]))
    if table.supports_timeout:
        emit.store(emit.load_context("now_ps", I64), emit.address(entry, abi["EntryView.last_hit_ps"]), 8)
    if table.direct_meter is not None:
        array = emit.program.meter_arrays[table.direct_meter]
        if array.result is not None:
            meter = emit.load(emit.address(entry, abi["EntryView.meter"]), POINTER, 8)
            with emit.when(hit):
                colour = meter_colour(emit, meter, array.counts_bytes)
                store_field(emit, field_place(emit, array.result), emit.resize(colour, array.result.width_bits))


def _action_of(emit: Emitter, table: Table, entry: Value, default: Value) -> Value:
    """Return the entry's ActionData*. An entry with an empty group executes the default action."""
    abi = emit.shared.abi
    action = emit.load(emit.address(entry, abi["EntryView.action"]), POINTER, 8)
    if table.type is not TableType.INDIRECT_WITH_SELECTOR:
        return action
    assert table.action_profile is not None
    profile = emit.program.action_profiles[table.action_profile]
    assert profile.selector_algorithm is not None
    result = emit.local(8)
    emit.store(action, result, 8)
    group = emit.load(emit.address(entry, abi["EntryView.group"]), POINTER, 8)
    with emit.when(emit.builder.icmp_unsigned("!=", group, POINTER(None))):
        where = f"action selector '{profile.name}'"
        hash_value = hash_of(emit, profile.selector_input, profile.selector_algorithm, where)
        member = emit.call_runtime("weft_group_select", POINTER, emit.context, group, hash_value)
        emit.store(member, result, 8)
        with emit.when(emit.builder.icmp_unsigned("==", member, POINTER(None)), likely=False):
            fallback = emit.load(emit.address(default, abi["EntryView.action"]), POINTER, 8)
            emit.store(fallback, result, 8)
    chosen = emit.load(result, POINTER, 8)
    # The default entry may itself have an empty group; then no action is executed.
    return emit.builder.select(emit.builder.icmp_unsigned("!=", chosen, POINTER(None)), chosen, _no_action(emit))


def _no_action(emit: Emitter) -> Value:
    data = emit.shared.abi["kNoAction"].to_bytes(4, "little") + bytes(4)
    return emit.shared.constant_bytes(data)


def action_number(emit: Emitter, action: Value) -> Value:
    """The number of the action that an ActionData* names (i32)."""
    emit.extent(action, emit.shared.abi["sizeof(ActionData)"], "an entry's action")
    return emit.load(emit.address(action, emit.shared.abi["ActionData.action"]), I32, 4)


def action_arguments(emit: Emitter, action: Value) -> Value:
    """The address of the data of an ActionData*."""
    return emit.address(action, emit.shared.abi["sizeof(ActionData)"])
