"""Checks that P4Info describes its program: references, kinds, widths and sizes.

Raises RequestError INVALID_ARGUMENT with the name of the entity and both values. `bind` does further checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from finsy.proto import p4i, p4t

from weft.switch.bmv2json import Program, Table
from weft.switch.p4runtime.errors import choices, invalid, place

IN_DEVICE_CONFIG = "in p4_device_config"

_PREFIXES: Mapping[str, int] = {
    "tables": p4i.P4Ids.TABLE,
    "actions": p4i.P4Ids.ACTION,
    "action_profiles": p4i.P4Ids.ACTION_PROFILE,
    "counters": p4i.P4Ids.COUNTER,
    "direct_counters": p4i.P4Ids.DIRECT_COUNTER,
    "meters": p4i.P4Ids.METER,
    "direct_meters": p4i.P4Ids.DIRECT_METER,
    "registers": p4i.P4Ids.REGISTER,
    "digests": p4i.P4Ids.DIGEST,
    "value_sets": p4i.P4Ids.VALUE_SET,
    "controller_packet_metadata": p4i.P4Ids.CONTROLLER_HEADER,
}


def check_ids(info: p4i.P4Info) -> None:
    """Check that ids are unique and have the prefix of their kind (P4Runtime §6.3)."""
    seen: dict[int, str] = {}
    for section, prefix in _PREFIXES.items():
        for each in getattr(info, section):
            name, number = each.preamble.name, each.preamble.id
            what = f"p4info: {section.removesuffix('s').replace('_', ' ')} {name!r}"
            if number == 0:
                raise invalid(f"{what} has no id")
            if number in seen:
                raise invalid(f"p4info: {name!r} and {seen[number]!r} have the same id {number:#010x}")
            if number >> 24 != prefix:
                raise invalid(f"{what} has the id {number:#010x}, which does not begin with {prefix:#04x}")
            seen[number] = name
    for table in info.tables:
        with place(f"p4info: table {table.preamble.name!r}"):
            _check_parts((field.id, field.name, "match field") for field in table.match_fields)
            _check_parts((ref.id, f"{ref.id:#010x}", "action") for ref in table.action_refs)
    for action in info.actions:
        with place(f"p4info: action {action.preamble.name!r}"):
            _check_parts((parameter.id, parameter.name, "parameter") for parameter in action.params)
    for value_set in info.value_sets:
        with place(f"p4info: value set {value_set.preamble.name!r}"):
            _check_parts((field.id, field.name, "match field") for field in value_set.match)
    for header in info.controller_packet_metadata:
        with place(f"p4info: controller header {header.preamble.name!r}"):
            _check_parts((field.id, field.name, "field") for field in header.metadata)


def _check_parts(parts: Iterable[tuple[int, str, str]]) -> None:
    seen: dict[int, str] = {}
    for number, name, what in parts:
        if number == 0:
            raise invalid(f"{what} {name!r} has no id")
        if number in seen:
            raise invalid(f"{what}s {seen[number]!r} and {name!r} have the same id {number}")
        seen[number] = name


def check_consistency(program: Program, info: p4i.P4Info) -> None:
    """Check everything except names, kinds and widths of fields, which `bind` checks."""
    tables = program.tables
    for table in info.tables:
        with place(f"table {table.preamble.name!r}"):
            _check_table(info, table, tables[table.preamble.name])
    _check_direct(info, program)
    _check_profiles(info, program)
    for register in info.registers:
        _check_cells(register, program.register_arrays[register.preamble.name].width_bits)
    for meter in [*info.meters, *info.direct_meters]:
        array = program.meter_arrays.get(meter.preamble.name)
        if array is not None:
            unit = "BYTES" if array.counts_bytes else "PACKETS"
            _same(f"meter {array.name!r}: the unit", _unit(meter), unit)
    lists = {each.name: each for each in program.learn_lists.values()}
    for digest in info.digests:
        elements = lists[digest.preamble.name].elements
        widths = [getattr(element, "width_bits", None) for element in elements]
        with place(f"digest {digest.preamble.name!r}"):
            _check_digest(digest, info.type_info, widths)


def _unit(meter: p4i.Meter | p4i.DirectMeter) -> str:
    number = meter.spec.unit
    return p4i.MeterSpec.Unit.Name(number) if number in p4i.MeterSpec.Unit.values() else str(number)


def _same(what: str, declared: object, found: object) -> None:
    if declared != found:
        raise invalid(f"{what} is {declared}, {IN_DEVICE_CONFIG} {found}")


def _names(objects: Iterable[Any]) -> dict[int, str]:
    return {each.preamble.id: each.preamble.name for each in objects}


def _named(names: Mapping[int, str], number: int, what: str) -> str:
    if number not in names:
        known = (f"{each:#010x}" for each in names)
        raise invalid(f"{what} {number:#010x} is not in p4info", valid=choices(known))
    return names[number]


# ---- tables


def _check_table(info: p4i.P4Info, declared: p4i.Table, found: Table) -> None:
    if not found.constant_entries:  # p4c gives a table that lists entries room for these in JSON only
        _same("the size", declared.size, found.max_size)
    names, in_program = [field.name for field in declared.match_fields], [key.name for key in found.key]
    if sorted(names) == sorted(in_program):  # else the program has names of its own for them
        _same("the order of match fields", names, in_program)
    if declared.implementation_id or found.action_profile is not None:
        profiles = _names(info.action_profiles)
        name = _named(profiles, declared.implementation_id, "implementation_id") if declared.implementation_id else None
        _same("the action profile", name, found.action_profile)
    resources = {**_names(info.direct_counters), **_names(info.direct_meters)}
    for number in declared.direct_resource_ids:
        _named(resources, number, "direct_resource_id")
    actions = _names(info.actions)
    referred = {ref.id: actions[ref.id] for ref in declared.action_refs}
    default = found.default_entry.action.name if found.default_entry is not None else None
    for what, number in (
        ("const_default_action_id", declared.const_default_action_id),
        ("initial_default_action", declared.initial_default_action.action_id),
    ):
        if number:
            name = _named(referred, number, what)
            if default is not None:
                _same(f"the default action ({what})", repr(name), repr(default))
    notifies = declared.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL
    if notifies and not found.supports_timeout:
        raise invalid(f"idle_timeout_behavior is NOTIFY_CONTROL, {IN_DEVICE_CONFIG} there is no support_timeout")


def _check_direct(info: p4i.P4Info, program: Program) -> None:
    tables = {table.preamble.id: table for table in info.tables}
    kinds: list[tuple[str, Iterable[Any], Callable[[Table], bool], Mapping[str, Any]]] = [
        ("direct counter", info.direct_counters, lambda table: table.with_counters, program.counter_arrays),
        (
            "direct meter",
            info.direct_meters,
            lambda table: table.direct_meter is not None,
            program.meter_arrays,
        ),
    ]
    for what, objects, has, arrays in kinds:
        for each in objects:
            with place(f"{what} {each.preamble.name!r}"):
                name = _named(_names(info.tables), each.direct_table_id, "direct_table_id")
                if each.preamble.id not in tables[each.direct_table_id].direct_resource_ids:
                    raise invalid(f"it is not among the direct_resource_ids of its table {name!r}")
                array = arrays.get(each.preamble.name)
                if array is not None:
                    _same("its table", repr(name), repr(array.table))
                elif not has(program.tables[name]):
                    raise invalid(f"its table {name!r} has none {IN_DEVICE_CONFIG}")


def _check_profiles(info: p4i.P4Info, program: Program) -> None:
    tables = {table.preamble.id: table for table in info.tables}
    for profile in info.action_profiles:
        number, name = profile.preamble.id, profile.preamble.name
        with place(f"action profile {name!r}"):
            found = program.action_profiles.get(name)
            if found is not None:
                _same("the size", profile.size, found.max_size)
            for table_id in profile.table_ids:
                table = _named(_names(info.tables), table_id, "table_id")
                if tables[table_id].implementation_id != number:
                    raise invalid(f"its table {table!r} has another implementation_id")


# ---- types


def _plain_width(spec: p4t.P4DataTypeSpec) -> int | None:
    """Return the width of a plain type, None without one."""
    if spec.HasField("bool"):
        return 1
    if not spec.HasField("bitstring"):
        return None
    kind = spec.bitstring.WhichOneof("type_spec")
    return None if kind is None else getattr(spec.bitstring, kind).bitwidth


def _check_cells(register: p4i.Register, width_bits: int) -> None:
    declared = _plain_width(register.type_spec)
    if declared is not None and declared != width_bits:
        raise invalid(
            f"register {register.preamble.name!r} has cells of {declared} bits, {IN_DEVICE_CONFIG} {width_bits}"
        )


def _leaves(spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo) -> Iterator[p4t.P4DataTypeSpec]:
    if spec.HasField("struct"):
        if spec.struct.name not in types.structs:
            raise invalid(f"struct {spec.struct.name!r} is not in type_info", valid=choices(types.structs))
        for member in types.structs[spec.struct.name].members:
            yield from _leaves(member.type_spec, types)
    elif spec.HasField("tuple"):
        for element in spec.tuple.members:
            yield from _leaves(element, types)
    else:
        yield spec


def _check_digest(digest: p4i.Digest, types: p4t.P4TypeInfo, widths: list[int | None]) -> None:
    leaves = list(_leaves(digest.type_spec, types))
    _same("the number of values", len(leaves), len(widths))
    for index, (leaf, found) in enumerate(zip(leaves, widths, strict=True), start=1):
        declared = _plain_width(leaf)
        if declared is not None and found is not None and declared != found:
            raise invalid(f"value {index} has {declared} bits, {IN_DEVICE_CONFIG} {found}")
