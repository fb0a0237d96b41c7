"""A forwarding pipeline config: P4Info and the BMv2 program it describes, bound to each other and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from finsy.proto import p4i, p4r

from switch.bmv2json import Action, Bmv2JsonError, KeyField, MatchKind, Program, Table, load_program
from switch.p4runtime.errors import choices, invalid, place

BoundT = TypeVar("BoundT")

_JSON_KINDS: dict[int, tuple[MatchKind, ...]] = {
    p4i.MatchField.EXACT: (MatchKind.EXACT, MatchKind.VALID),
    p4i.MatchField.LPM: (MatchKind.LPM,),
    p4i.MatchField.TERNARY: (MatchKind.TERNARY,),
    p4i.MatchField.RANGE: (MatchKind.RANGE,),
    p4i.MatchField.OPTIONAL: (MatchKind.TERNARY,),
}


_WITH_PRIORITY = (p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL)


@dataclass(frozen=True, slots=True)
class BoundField:
    """A match field; `width_bits` is what the data plane holds."""

    id: int
    name: str
    match_type: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class BoundParameter:
    """A parameter of an action."""

    id: int
    name: str
    width_bits: int
    place: str
    """What errors call it."""


@dataclass(frozen=True, slots=True)
class BoundAction:
    """An action as one table may use it; parameters in the program's order."""

    id: int
    name: str
    scope: int
    parameters: tuple[BoundParameter, ...]
    parameters_by_id: Mapping[int, BoundParameter]


@dataclass(frozen=True, slots=True)
class BoundTable:
    """A table; `fields` in the order of the program's key."""

    id: int
    name: str
    info: p4i.Table
    table: Table
    fields: tuple[BoundField, ...]
    actions: Mapping[int, BoundAction]
    profile_id: int
    has_direct_counter: bool
    has_direct_meter: bool
    needs_priority: bool
    """P4Runtime wants a priority: some field is ternary, range or optional."""
    is_constant: bool
    """The program lists its entries (`const entries`), which nobody may change."""
    has_constant_default: bool
    notifies_idle: bool
    """Its entries may have idle timeouts."""


@dataclass(frozen=True, slots=True)
class BoundProfile:
    """An action profile; its members take the actions of its tables."""

    id: int
    name: str
    info: p4i.ActionProfile
    actions: Mapping[int, BoundAction]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a device runs. Objects by P4Info id."""

    config: p4r.ForwardingPipelineConfig
    program: Program
    tables: Mapping[int, BoundTable]
    profiles: Mapping[int, BoundProfile]
    counters: Mapping[int, p4i.Counter]
    meters: Mapping[int, p4i.Meter]
    registers: Mapping[int, p4i.Register]
    digests: Mapping[int, p4i.Digest]
    value_sets: Mapping[int, p4i.ValueSet]
    packet_in: tuple[p4i.ControllerPacketMetadata.Metadata, ...]
    packet_out: tuple[p4i.ControllerPacketMetadata.Metadata, ...]

    @property
    def preinitialized(self) -> frozenset[str]:
        """Tables that start with entries of the program which controllers may change (§9.1.5)."""
        return frozenset(table.name for table in self.tables.values() if not table.is_constant)

    def table_named(self, name: str) -> BoundTable | None:
        """The table called `name`, if controllers can see it."""
        return next((table for table in self.tables.values() if table.name == name), None)


def lookup(objects: Mapping[int, BoundT], number: int, what: str) -> BoundT:
    """The object with this id. INVALID_ARGUMENT if there is none."""
    found = objects.get(number)
    if found is None:
        raise invalid(f"unknown {what} id {number:#010x} ({choices(f'{each:#010x}' for each in objects)})")
    return found


@lru_cache(maxsize=16)
def _program(document: bytes) -> Program:
    # a fabric's devices all get the same document
    return load_program(document)


def bind(config: p4r.ForwardingPipelineConfig) -> Pipeline:
    """Check a config. RequestError INVALID_ARGUMENT if the program is bad or P4Info describes another one."""
    if not config.p4_device_config:
        raise invalid("p4_device_config is empty (expected a BMv2 JSON document)")
    try:
        program = _program(config.p4_device_config)
    except Bmv2JsonError as error:
        raise invalid(f"p4_device_config: {error}") from None
    info = config.p4info
    _check_ids(info)
    with place("p4info"):
        return _bind(config, program, info)


def _bind(config: p4r.ForwardingPipelineConfig, program: Program, info: p4i.P4Info) -> Pipeline:
    tables = {table.preamble.id: _bind_table(info, program, table) for table in info.tables}
    _check_arrays(program, info)
    if any(extern.instances for extern in info.externs):
        raise invalid("extern instances are not supported")
    return Pipeline(
        config=config,
        program=program,
        tables=tables,
        profiles={each.preamble.id: _bind_profile(program, each, tables) for each in info.action_profiles},
        counters={each.preamble.id: each for each in info.counters},
        meters={each.preamble.id: each for each in info.meters},
        registers={each.preamble.id: each for each in info.registers},
        digests={each.preamble.id: each for each in info.digests},
        value_sets={each.preamble.id: each for each in info.value_sets},
        packet_in=_packet_metadata(info, "packet_in"),
        packet_out=_packet_metadata(info, "packet_out"),
    )


def _preambles(info: p4i.P4Info) -> Iterable[p4i.Preamble]:
    for section, objects in info.ListFields():
        if section.message_type is not None and section.name not in ("pkg_info", "type_info", "externs"):
            for each in objects:
                yield each.preamble


def _check_ids(info: p4i.P4Info) -> None:
    seen: dict[int, str] = {}
    for preamble in _preambles(info):
        if preamble.id == 0:
            raise invalid(f"p4info: {preamble.name!r} has no id")
        if preamble.id in seen:
            other = seen[preamble.id]
            raise invalid(f"p4info: {preamble.name!r} and {other!r} have the same id {preamble.id:#010x}")
        seen[preamble.id] = preamble.name


def _named(objects: Mapping[str, BoundT], name: str, what: str) -> BoundT:
    if name not in objects:
        raise invalid(f"{what} {name!r} is not in p4_device_config ({choices(objects)})")
    return objects[name]


def _bind_table(info: p4i.P4Info, program: Program, table_info: p4i.Table) -> BoundTable:
    name = table_info.preamble.name
    table = _named(program.tables, name, "table")
    with place(f"table {name!r}"):
        if len(table_info.match_fields) != len(table.key):
            raise invalid(
                f"{len(table_info.match_fields)} match fields do not fit the {len(table.key)} key fields"
                " of p4_device_config"
            )
        pairs = zip(table_info.match_fields, table.key, strict=True)
        direct = set(table_info.direct_resource_ids)
        fields = tuple(_bind_field(field, key) for field, key in pairs)
        default = table.default_entry
        return BoundTable(
            id=table_info.preamble.id,
            name=name,
            info=table_info,
            table=table,
            fields=fields,
            actions={ref.id: _bind_action(info, table, ref) for ref in table_info.action_refs},
            profile_id=table_info.implementation_id,
            has_direct_counter=any(each.preamble.id in direct for each in info.direct_counters),
            has_direct_meter=any(each.preamble.id in direct for each in info.direct_meters),
            needs_priority=any(field.match_type in _WITH_PRIORITY for field in fields),
            is_constant=table_info.is_const_table or (table.immutable and not table_info.has_initial_entries),
            has_constant_default=bool(
                table_info.implementation_id
                or table_info.const_default_action_id
                or (default is not None and default.constant)
            ),
            notifies_idle=table_info.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
        )


def _bind_field(info: p4i.MatchField, key: KeyField) -> BoundField:
    kinds = _JSON_KINDS.get(info.match_type)
    if kinds is None:
        raise invalid(f"match field {info.name!r} has an unsupported match type {info.match_type}")
    if key.kind not in kinds:
        raise invalid(
            f"match field {info.name!r} is {key.kind.value!r} in p4_device_config"
            f" ({choices(kind.value for kind in kinds)})"
        )
    width_bits = key.field.width_bits
    _check_width(f"match field {info.name!r}", info.bitwidth, width_bits)
    return BoundField(info.id, info.name, info.match_type, width_bits)


def _check_width(what: str, controller_bits: int, data_plane_bits: int) -> None:
    # a translated type may be wider for the controller; p4c gives no width for types such as error
    if 0 < controller_bits < data_plane_bits:
        raise invalid(f"{what} has {controller_bits} bits, in p4_device_config {data_plane_bits}")


def _bind_action(info: p4i.P4Info, table: Table, ref: p4i.ActionRef) -> BoundAction:
    action_info = next((each for each in info.actions if each.preamble.id == ref.id), None)
    if action_info is None:
        raise invalid(f"action id {ref.id:#010x} is not among the actions")
    action = _named({each.name: each for each in table.actions}, action_info.preamble.name, "action")
    parameters = _bind_parameters(action_info, action)
    by_id = {parameter.id: parameter for parameter in parameters}
    return BoundAction(ref.id, action.name, ref.scope, parameters, by_id)


def _bind_parameters(info: p4i.Action, action: Action) -> tuple[BoundParameter, ...]:
    if len(info.params) != len(action.parameters):
        raise invalid(
            f"action {action.name!r} has {len(info.params)} parameters,"
            f" in p4_device_config {len(action.parameters)}"
        )
    bound = []
    for parameter, in_program in zip(info.params, action.parameters, strict=True):
        what = f"action {action.name!r}, parameter {parameter.name!r}"
        _check_width(what, parameter.bitwidth, in_program.width_bits)
        place_name = f"parameter {parameter.name!r}"
        bound.append(BoundParameter(parameter.id, parameter.name, in_program.width_bits, place_name))
    return tuple(bound)


def _bind_profile(
    program: Program, info: p4i.ActionProfile, tables: Mapping[int, BoundTable]
) -> BoundProfile:
    name = info.preamble.name
    profile = _named(program.action_profiles, name, "action profile")
    with place(f"action profile {name!r}"):
        if info.with_selector != (profile.selector_algorithm is not None):
            raise invalid("with_selector does not fit p4_device_config")
        users = [lookup(tables, number, "table") for number in info.table_ids]
        if not users:
            raise invalid("it has no table_ids")
        return BoundProfile(info.preamble.id, name, info, users[0].actions)


def _check_arrays(program: Program, info: p4i.P4Info) -> None:
    sections: list[tuple[str, Iterable[Any], Mapping[str, Any]]] = [
        ("counter", info.counters, program.counter_arrays),
        ("meter", info.meters, program.meter_arrays),
        ("register", info.registers, program.register_arrays),
    ]
    for what, objects, arrays in sections:
        for each in objects:
            array = _named(arrays, each.preamble.name, what)
            if each.size > array.size:
                raise invalid(
                    f"{what} {array.name!r} has {each.size} cells, in p4_device_config {array.size}"
                )
    for value_set in info.value_sets:
        _named(program.value_sets, value_set.preamble.name, "value set")
    lists = {each.name: each for each in program.learn_lists.values()}
    for digest in info.digests:
        _named(lists, digest.preamble.name, "digest")


def _packet_metadata(info: p4i.P4Info, name: str) -> tuple[p4i.ControllerPacketMetadata.Metadata, ...]:
    for header in info.controller_packet_metadata:
        if header.preamble.name == name:
            total_bits = sum(field.bitwidth for field in header.metadata)
            if total_bits % 8:
                raise invalid(f"controller header {name!r} has {total_bits} bits, not whole bytes")
            return tuple(header.metadata)
    return ()
