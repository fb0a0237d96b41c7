"""Emits the reports of instrumented code (switch/trace). Without instrumentation nothing is emitted."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from weft.switch.bmv2json import Expression, Kind, PrimitiveCall, Table
from weft.switch.lowering.emitter import I32, I64, POINTER, VOID, Emitter, Value
from weft.switch.lowering.expressions import lower, lower_bool, lvalue
from weft.switch.lowering.fields import load_field, store_big_endian
from weft.switch.lowering.layout import bytes_for, key_bytes
from weft.switch.trace.places import Place, Selected, outcomes, primitive_place, table_place, value_bits


def report(emit: Emitter, place: Place, values: Sequence[Value] = (), data: Value | None = None,
           data_bytes: Value | None = None) -> None:  # fmt: skip
    """Report `values`, and for an extraction also the bytes of the header."""
    if emit.shared.places is None:
        return
    if emit.shared.counts is not None:
        if not isinstance(place, Selected):  # counted at the targets of its cases
            _count(emit, place, values[0] if outcomes(place) > 1 else None)
        return
    widths = value_bits(place)
    size = sum(map(bytes_for, widths))
    buffer = emit.local(max(size, 1))
    position = 0
    for value, width in zip(values, widths, strict=True):
        store_big_endian(emit, emit.resize(value, width), emit.address(buffer, position))
        position += bytes_for(width)
    arguments = (buffer, I32(size), data if data is not None else POINTER(None), data_bytes or I32(0))
    emit.call_runtime("weft_trace", VOID, emit.state, emit.context, _number(emit, place), *arguments)


def report_lookup(emit: Emitter, table: Table, view: Value, key: Value | None, found: Value) -> None:
    """Report a lookup: key in memory, and the entry or null."""
    if emit.shared.places is None:
        return
    if emit.shared.counts is not None:
        _count_lookup(emit, table, found)
        return
    buffer = key if key is not None else emit.local(1)
    arguments = (view, buffer, I32(key_bytes(table)), found)
    number = _number(emit, table_place(table))
    emit.call_runtime("weft_trace_lookup", VOID, emit.state, emit.context, number, *arguments)


def _number(emit: Emitter, place: Place) -> Value:
    assert emit.shared.places is not None
    return I32(emit.shared.abi["kFirstProgramSite"] + emit.shared.places.number(place))


def counting(emit: Emitter, place: Place, outcome: int, target: Value) -> Value:
    """Return the block that counts an outcome and continues in `target`; `target` itself unless code counts."""
    if emit.shared.places is None or emit.shared.counts is None:
        return target
    here, block = emit.builder.block, emit.block("counting")
    emit.continue_in(block)
    count_outcome(emit, place, outcome)
    emit.builder.branch(target)
    emit.continue_in(here)
    return block


def count_outcome(emit: Emitter, place: Place, outcome: int) -> None:
    """Count one of the outcomes of a place, if code counts."""
    if emit.shared.places is not None and emit.shared.counts is not None:
        _count(emit, place, I64(outcome))


def _count(emit: Emitter, place: Place, outcome: Value | None) -> None:
    """Count an outcome of a place, atomically, as switches in other threads may count there, too."""
    assert emit.shared.places is not None
    assert emit.shared.counts is not None
    index: Value = I64(emit.shared.places.counts(place)[0])
    if outcome is not None:
        index = emit.builder.add(index, emit.resize(outcome, I64.width))
    counts = emit.shared.module.globals.get(emit.shared.counts)
    if counts is None:
        counts = ir.GlobalVariable(emit.shared.module, I64, emit.shared.counts)
        counts.linkage = "external"
    cell = emit.builder.gep(counts, [index], inbounds=True, source_etype=I64)
    emit.builder.atomic_rmw("add", cell, I64(1), "monotonic")


def _count_lookup(emit: Emitter, table: Table, found: Value) -> None:
    """Count a lookup, and also at the entry, in its counter, which is unused in a table without direct counters."""
    hit = emit.builder.icmp_unsigned("!=", found, POINTER(None))
    _count(emit, table_place(table), hit)
    if table.key and not table.with_counters:
        with emit.when(hit):
            entry = emit.extent(found, emit.shared.abi["sizeof(EntryView)"], "an entry")
            cell = emit.address(entry, emit.shared.abi["EntryView.counter"])
            packets = emit.address(cell, emit.shared.abi["CounterCell.packets"])
            emit.store(emit.builder.add(emit.load(packets, I64, 8), I64(1)), packets, 8)


class PrimitiveReport:
    """The report of a primitive: create it before the primitive is emitted, call `finish` after."""

    def __init__(self, emit: Emitter, call: PrimitiveCall) -> None:
        self._emit = emit
        self._place = None
        self._values: list[Value] = []
        if emit.shared.places is None or call.name == "_jump":
            return
        self._place = primitive_place(emit.program, call)
        self._values = [_operand(emit, operand, width) for operand, width in self._place.operands]

    def finish(self) -> None:
        """Report the operands from before the primitive, and the result after it."""
        if self._place is None:
            return
        if self._place.result is not None:
            field = lvalue(self._emit, self._place.result)
            self._values.append(load_field(self._emit, field))
        report(self._emit, self._place, self._values)


def _operand(emit: Emitter, expression: Expression, width_bits: int) -> Value:
    if expression.kind is Kind.BOOL:
        return lower_bool(emit, expression)
    return lower(emit, expression, width_bits)
