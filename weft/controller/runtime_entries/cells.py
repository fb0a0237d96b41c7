"""Register values, meter rates, counter values and value sets in files of entries.

The program changes registers and counters, so these are written only once, after a switch has loaded its program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import finsy
from finsy.p4entity import P4ValueSetMember
from finsy.proto import p4i

from weft.controller.entities import Cell
from weft.controller.errors import SettingError
from weft.controller.plain_values import count_of, match_value, number_of
from weft.controller.program_names import ByName, ProgramNames, value_set_fields
from weft.controller.runtime_entries.fields import at, entries_of, mapping, needed, number_at

_COUNT_BITS = 63
_INDEX_BITS = 31
_REGISTER_KEYS = ("register", "index", "value")
_METER_KEYS = ("meter", "index", "cir", "cburst", "pir", "pburst", "eburst")
_COUNTER_KEYS = ("counter", "index", "packet_count", "byte_count")
_VALUE_SET_KEYS = ("value_set", "members")
_RATES = ("cir", "cburst", "pir", "pburst")


def register_cell(entry: Any, program: ProgramNames) -> finsy.P4RegisterEntry:
    """Return one cell of a register, or all cells, with a value. Raises SettingError."""
    entry = mapping(entry, _REGISTER_KEYS, "a register's cell")
    register = program.registers.named(needed(entry, "register"))
    index = _index(entry, register)
    return finsy.P4RegisterEntry(
        register.preamble.name, index=index, data=register_value(register, needed(entry, "value"))
    )


def register_value(register: p4i.Register, value: Any) -> int | bool:
    """Return a value for a register's cells. Raises SettingError: it does not fit, or cells are not numbers."""
    spec = register.type_spec
    if spec.HasField("bool"):
        return bool(at("value", number_of, value, 1))
    bits, is_signed = spec.bitstring.bit.bitwidth, spec.bitstring.HasField("int")
    if is_signed:
        bits = spec.bitstring.int.bitwidth
    if not bits:
        raise SettingError(f"register: cells of {register.preamble.name} are not numbers")
    found = int(at("value", number_of, value, bits))
    return found - (1 << bits) if is_signed and found >> (bits - 1) else found


def meter_cell(entry: Any, program: ProgramNames) -> finsy.P4MeterEntry:
    """Return one cell of a meter, or all cells, with its rates. Raises SettingError."""
    entry = mapping(entry, _METER_KEYS, "a meter's cell")
    meter = program.meters.named(needed(entry, "meter"))
    rates = {key: value for key, value in entry.items() if key not in ("meter", "index")}
    return finsy.P4MeterEntry(meter.preamble.name, index=_index(entry, meter), config=meter_config(rates, meter))


def meter_config(config: Any, meter: p4i.Meter | p4i.DirectMeter) -> finsy.P4MeterConfig:
    """Return a meter's rates per second and bursts (P4Runtime, section 9.4). Raises SettingError."""
    single = meter.spec.type == p4i.MeterSpec.SINGLE_RATE_THREE_COLOR
    keys = (*_RATES, "eburst") if single else _RATES
    config = mapping(config, keys, "the rates of a meter")
    found = {key: number_at(config, key, _COUNT_BITS) for key in _RATES}
    if meter.spec.type == p4i.MeterSpec.TWO_RATE_THREE_COLOR:
        if found["pir"] < found["cir"]:
            raise SettingError(f"pir: {found['pir']} is below cir {found['cir']}")
    elif (found["pir"], found["pburst"]) != (found["cir"], found["cburst"]):
        raise SettingError("pir: a single-rate meter uses cir and cburst as pir and pburst")
    return finsy.P4MeterConfig(**found, eburst=number_at(config, "eburst", _COUNT_BITS, 0))


def counter_cell(entry: Any, program: ProgramNames) -> finsy.P4CounterEntry:
    """Return one cell of a counter, or all cells, with its counts (0 by default). Raises SettingError."""
    entry = mapping(entry, _COUNTER_KEYS, "a counter's cell")
    counter = program.counters.named(needed(entry, "counter"))
    counts = {key: number_at(entry, key, _COUNT_BITS, 0) for key in ("packet_count", "byte_count")}
    return finsy.P4CounterEntry(counter.preamble.name, index=_index(entry, counter), data=finsy.P4CounterData(**counts))


def value_set(entry: Any, program: ProgramNames) -> finsy.P4ValueSetEntry:
    """Return a value set with its members, written like table keys. Raises SettingError."""
    entry = mapping(entry, _VALUE_SET_KEYS, "a value set")
    info = program.value_sets.named(needed(entry, "value_set"))
    fields = value_set_fields(info)
    members = [at(place, _member, each, fields, info) for place, each in entries_of(entry, "members")]
    if 0 < info.size < len(members):
        raise SettingError(f"members: {len(members)} of them", valid=f"at most {info.size}")
    return finsy.P4ValueSetEntry(info.preamble.name, members=members)


def _member(value: Any, fields: ByName[p4i.MatchField], info: p4i.ValueSet) -> P4ValueSetMember:
    if not isinstance(value, Mapping):
        if len(fields) != 1:
            raise SettingError(f"must be a mapping of fields to values (fields: {', '.join(fields)})")
        value = {next(iter(fields)): value}
    found = {}
    for name, each in value.items():
        field = fields.named(name, info.preamble.name)
        found[field.name] = at(str(name), match_value, field, each)
    missing = [name for name, field in fields.items() if field.match_type == field.EXACT and name not in found]
    if missing:
        raise SettingError(f"needs {', '.join(missing)}, too")
    return P4ValueSetMember(found)


def _index(entry: Mapping[str, Any], array: p4i.Register | p4i.Meter | p4i.Counter) -> int | None:
    """Return the index of the cell; None for all cells."""
    if entry.get("index") is None:
        return None
    index: int = at("index", count_of, entry["index"], _INDEX_BITS)
    if index >= array.size:
        raise SettingError(f"index: {index}", valid=f"0 to {array.size - 1}")
    return index


CELL_READERS: dict[str, Callable[[Any, ProgramNames], Cell]] = {
    "register_entries": register_cell,
    "meter_entries": meter_cell,
    "counter_entries": counter_cell,
    "value_set_entries": value_set,
}


def cell_key(cell: Cell) -> tuple[str, str, int | None]:
    """Return a key that identifies a cell, or all cells of an array."""
    if isinstance(cell, finsy.P4ValueSetEntry):
        return "value set", cell.value_set_id, None
    if isinstance(cell, finsy.P4RegisterEntry):
        return "register", cell.register_id, cell.index
    if isinstance(cell, finsy.P4MeterEntry):
        return "meter", cell.meter_id, cell.index
    return "counter", cell.counter_id, cell.index
