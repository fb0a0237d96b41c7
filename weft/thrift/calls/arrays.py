"""Calls on counters, meters and registers of a program, without a table's."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from finsy.proto import p4i, p4r

from weft.controller.switch_cli import arrays
from weft.controller.switch_cli.names import find
from weft.thrift.bmv2 import CounterError, MeterError, RegisterError
from weft.thrift.calls.registry import CallRefusedError, Target, as_signed, carries_out, refused_as
from weft.thrift.calls.tables import Record, meter_config, rate_words, shown_counter, shown_rates

_MOST_CELLS = 1 << 20


def _index(size: int, index: int, code: IntEnum) -> p4r.Index:
    with refused_as(code):
        return arrays.index_below(size, str(index))


# Counters


def _counter(on: Target, name: str) -> p4i.Counter:
    counters: Sequence[p4i.Counter] = on.session.info.counters
    with refused_as(CounterError.INVALID_COUNTER_NAME):
        return find(counters, name, "counter")


def _counter_cell(on: Target, name: str, index: int) -> p4r.CounterEntry:
    counter = _counter(on, name)
    at = _index(counter.size, index, CounterError.INVALID_INDEX)
    return p4r.CounterEntry(counter_id=counter.preamble.id, index=at)


@carries_out
async def bm_counter_read(on: Target, *, counter_name: str, index: int) -> Record:
    """Return what a cell has counted."""
    return shown_counter(await arrays.read_counter(on.session, _counter_cell(on, counter_name, index)))


@carries_out
async def bm_counter_write(on: Target, *, counter_name: str, index: int, value: Record) -> None:
    """Set what a cell has counted."""
    cell = _counter_cell(on, counter_name, index)
    await arrays.write_counter(on.session, cell, value["packets"], value["bytes"])


@carries_out
async def bm_counter_reset_all(on: Target, *, counter_name: str) -> None:
    """Set all cells to 0."""
    await arrays.counter_reset(on.session, [_counter(on, counter_name).preamble.name])


# Meters


def _meter(on: Target, name: str) -> p4i.Meter:
    meters: Sequence[p4i.Meter] = on.session.info.meters
    with refused_as(MeterError.INVALID_METER_NAME):
        return find(meters, name, "meter")


@carries_out
async def bm_meter_array_set_rates(on: Target, *, meter_array_name: str, rates: Sequence[Record]) -> None:
    """Set the rates of all cells."""
    meter = _meter(on, meter_array_name)
    with refused_as(MeterError.BAD_RATES_LIST):
        await arrays.meter_array_set_rates(on.session, [meter.preamble.name, *rate_words(rates)])


@carries_out
async def bm_meter_set_rates(on: Target, *, meter_array_name: str, index: int, rates: Sequence[Record]) -> None:
    """Set the rates of a cell."""
    meter = _meter(on, meter_array_name)
    at = _index(meter.size, index, MeterError.INVALID_INDEX)
    config = meter_config(rates, MeterError.BAD_RATES_LIST)
    cell = p4r.MeterEntry(meter_id=meter.preamble.id, index=at, config=config)
    await on.session.write(p4r.Update.MODIFY, meter_entry=cell)


@carries_out
async def bm_meter_get_rates(on: Target, *, meter_array_name: str, index: int) -> list[Record]:
    """Return the rates of a cell; none if they are not set."""
    meter = _meter(on, meter_array_name)
    at = _index(meter.size, index, MeterError.INVALID_INDEX)
    return shown_rates(await arrays.read_rates(on.session, meter, at))


# Registers. A call's value has 64 bits: wider cells show their low bits, and narrower ones keep those of the value.


def _register(on: Target, name: str) -> tuple[p4i.Register, int]:
    with refused_as(RegisterError.INVALID_REGISTER_NAME):
        return arrays.register_named(on.session, name)


@carries_out
async def bm_register_read(on: Target, *, register_array_name: str, idx: int) -> int:
    """Return a cell."""
    register, _ = _register(on, register_array_name)
    at = _index(register.size, idx, RegisterError.INVALID_INDEX)
    return as_signed((await arrays.read_register(on.session, register, at))[0])


@carries_out
async def bm_register_read_all(on: Target, *, register_array_name: str) -> list[int]:
    """Return all cells, if they fit into an answer."""
    register, _ = _register(on, register_array_name)
    if register.size > _MOST_CELLS:
        reason = f"{register.size} cells are too many for one answer (valid: at most {_MOST_CELLS})"
        raise CallRefusedError(RegisterError.ERROR, reason)
    return [as_signed(each) for each in await arrays.read_register(on.session, register, None)]


@carries_out
async def bm_register_write(on: Target, *, register_array_name: str, index: int, value: int) -> None:
    """Set a cell."""
    register, width_bits = _register(on, register_array_name)
    at = _index(register.size, index, RegisterError.INVALID_INDEX)
    await arrays.write_register(on.session, register, [at], value & ((1 << width_bits) - 1))


@carries_out
async def bm_register_write_range(
    on: Target, *, register_array_name: str, start_index: int, end_index: int, value: int
) -> None:
    """Set the cells from the first index up to, and without, the second one."""
    register, width_bits = _register(on, register_array_name)
    if not 0 <= start_index <= end_index <= register.size:
        reason = f"{start_index} to {end_index} are no cells (valid: 0 to {register.size})"
        raise CallRefusedError(RegisterError.INVALID_INDEX, reason)
    indices = (p4r.Index(index=index) for index in range(start_index, end_index))
    await arrays.write_register(on.session, register, indices, value & ((1 << width_bits) - 1))


@carries_out
async def bm_register_reset(on: Target, *, register_array_name: str) -> None:
    """Set all cells to 0."""
    register, _ = _register(on, register_array_name)
    await arrays.register_reset(on.session, [register.preamble.name])
