"""A forwarding pipeline config: P4Info and its BMv2 program, bound to each other and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from finsy.proto import p4i, p4r
from google.protobuf.message import DecodeError

from weft.switch.bmv2json import Action, Bmv2JsonError, KeyField, MatchKind, Program, Table
from weft.switch.bmv2json.stored import load_stored_program
from weft.switch.p4runtime.consistency import check_consistency, check_ids
from weft.switch.p4runtime.device_config import document_of
from weft.switch.p4runtime.errors import choices, invalid, place
from weft.switch.p4runtime.translation import Ports, Translation, Translations

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
    """A match field; `width_bits` is the width in the data plane."""

    id: int
    name: str
    match_type: int
    width_bits: int
    translation: Translation | None = None


@dataclass(frozen=True, slots=True)
class BoundParameter:
    """A parameter of an action."""

    id: int
    name: str
    width_bits: int
    translation: Translation | None = None


@dataclass(frozen=True, slots=True)
class BoundAction:
    """An action in one table's scope; parameters are in the program's order."""

    id: int
    name: str
    scope: int
    parameters: tuple[BoundParameter, ...]
    parameters_by_id: Mapping[int, BoundParameter]


@dataclass(frozen=True, slots=True)
class BoundTable:
    """A table; `fields` are in the order of the program's key."""

    id: int
    name: str
    info: p4i.Table
    table: Table
    fields: tuple[BoundField, ...]
    actions: Mapping[int, BoundAction]
    profile_id: int
    has_direct_counter: bool
    meter_type: p4i.MeterSpec.Type.ValueType | None
    """MeterSpec.Type of its direct meter, if it has one."""
    needs_priority: bool
    """Whether P4Runtime requires a priority: a field is ternary, range or optional."""
    is_constant: bool
    """Whether the program lists its entries (`const entries`), so that they cannot be changed."""
    has_constant_default: bool
    notifies_idle: bool
    """Whether its entries may have idle timeouts."""


@dataclass(frozen=True, slots=True)
class BoundMetadata:
    """A field of a packet-in or packet-out header; `width_bits` is the width in the packet."""

    id: int
    name: str
    width_bits: int
    is_padding: bool
    translation: Translation | None


@dataclass(frozen=True, slots=True)
class BoundProfile:
    """An action profile; its members may use the actions of its tables."""

    id: int
    name: str
    info: p4i.ActionProfile
    actions: Mapping[int, BoundAction]


@dataclass(frozen=True, slots=True)
class BoundValueSet:
    """A parser value set."""

    id: int
    name: str
    size: int
    fields: tuple[BoundField, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A device's pipeline, with objects by P4Info id."""

    config: p4r.ForwardingPipelineConfig
    program: Program
    tables: Mapping[int, BoundTable]
    profiles: Mapping[int, BoundProfile]
    counters: Mapping[int, p4i.Counter]
    meters: Mapping[int, p4i.Meter]
    registers: Mapping[int, p4i.Register]
    digests: Mapping[int, p4i.Digest]
    value_sets: Mapping[int, BoundValueSet]
    packet_in: tuple[BoundMetadata, ...]
    packet_out: tuple[BoundMetadata, ...]
    translations: Translations
    prepared_inserts: dict[type, object] = field(default_factory=dict, compare=False, repr=False)
    """Prepared inserts by kind of backend (see plain_inserts.py)."""

    @property
    def preinitialized(self) -> frozenset[str]:
        """Tables that controllers may change although the program lists initial entries (§9.1.5)."""
        return frozenset(table.name for table in self.tables.values() if not table.is_constant)

    def table_named(self, name: str) -> BoundTable | None:
        """Return the table called `name`, None if controllers cannot see it."""
        return next((table for table in self.tables.values() if table.name == name), None)


def lookup(objects: Mapping[int, BoundT], number: int, what: str) -> BoundT:
    """Return the object with this id. INVALID_ARGUMENT if it does not exist."""
    found = objects.get(number)
    if found is None:
        raise invalid(f"unknown {what} id {number:#010x}", valid=choices(f"{each:#010x}" for each in objects))
    return found


@lru_cache(maxsize=16)
def _program(document: bytes) -> Program:
    # a fabric's devices all get the same document
    return load_stored_program(document)


def bind(encoded: bytes, ports: Ports) -> Pipeline:
    """Return the pipeline of a serialised config, checked.

    RequestError INVALID_ARGUMENT if it is malformed, the program is bad or P4Info describes another one.
    """
    found = _bound.get(encoded)
    if found is not None:
        return found
    try:
        config: p4r.ForwardingPipelineConfig = p4r.ForwardingPipelineConfig.FromString(encoded)
    except DecodeError:
        raise invalid("config is malformed") from None
    document = document_of(config.p4_device_config)
    try:
        program = _program(document)
    except Bmv2JsonError as error:
        raise invalid(f"p4_device_config: {error}") from None
    type_info = config.p4info.type_info
    bound = _bind_checked(config, program, Translations(type_info, ports))
    if not any(each.HasField("translated_type") for each in type_info.new_types.values()):
        if len(_bound) >= _MAX_BOUND:
            _bound.clear()
        _bound[encoded] = bound
    return bound


_bound: dict[bytes, Pipeline] = {}
"""Pipelines by config. A fabric's devices share a pipeline, unless it has translated types, which are per device."""
_MAX_BOUND = 16


def _bind_checked(config: p4r.ForwardingPipelineConfig, program: Program, translations: Translations) -> Pipeline:
    check_ids(config.p4info)
    with place("p4info"):
        pipeline = _bind(config, program, config.p4info, translations)
        check_consistency(program, config.p4info)
        return pipeline


def _bind(
    config: p4r.ForwardingPipelineConfig, program: Program, info: p4i.P4Info, translations: Translations
) -> Pipeline:
    tables = {table.preamble.id: _bind_table(info, program, table, translations) for table in info.tables}
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
        value_sets={each.preamble.id: _bind_value_set(program, each, translations) for each in info.value_sets},
        packet_in=_packet_metadata(info, program, "packet_in", translations),
        packet_out=_packet_metadata(info, program, "packet_out", translations),
        translations=translations,
    )


def _named(objects: Mapping[str, BoundT], name: str, what: str) -> BoundT:
    if name not in objects:
        raise invalid(f"{what} {name!r} is not in p4_device_config", valid=choices(objects))
    return objects[name]


def _bind_table(info: p4i.P4Info, program: Program, table_info: p4i.Table, translations: Translations) -> BoundTable:
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
        fields = tuple(_bind_field(field, key, translations) for field, key in pairs)
        default = table.default_entry
        return BoundTable(
            id=table_info.preamble.id,
            name=name,
            info=table_info,
            table=table,
            fields=fields,
            actions={ref.id: _bind_action(info, table, ref, translations) for ref in table_info.action_refs},
            profile_id=table_info.implementation_id,
            has_direct_counter=any(each.preamble.id in direct for each in info.direct_counters),
            meter_type=next((_meter_type(each) for each in info.direct_meters if each.preamble.id in direct), None),
            needs_priority=any(field.match_type in _WITH_PRIORITY for field in fields),
            is_constant=table_info.is_const_table or (table.immutable and not table_info.has_initial_entries),
            has_constant_default=bool(
                table_info.implementation_id
                or table_info.const_default_action_id
                or (default is not None and default.constant)
            ),
            notifies_idle=table_info.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
        )


def _meter_type(meter: p4i.Meter | p4i.DirectMeter) -> p4i.MeterSpec.Type.ValueType:
    kinds = p4i.MeterSpec.Type
    if meter.spec.type not in kinds.values():
        raise invalid(
            f"meter {meter.preamble.name!r} has the unknown type {meter.spec.type}",
            valid=choices(kinds.keys()),
        )
    return meter.spec.type


def _bind_field(info: p4i.MatchField, key: KeyField, translations: Translations) -> BoundField:
    kinds = _JSON_KINDS.get(info.match_type)
    if kinds is None:
        raise invalid(f"match field {info.name!r} has an unsupported match type {info.match_type}")
    if key.kind not in kinds:
        raise invalid(
            f"match field {info.name!r} is {key.kind.value!r} in p4_device_config",
            valid=choices(kind.value for kind in kinds),
        )
    width_bits = key.field.width_bits
    translation = translations.of(info.type_name.name, width_bits)
    if translation is None:
        _check_width(f"match field {info.name!r}", info.bitwidth, width_bits)
    return BoundField(info.id, info.name, info.match_type, width_bits, translation)


def _check_width(what: str, controller_bits: int, data_plane_bits: int) -> None:
    # p4c omits the width of types such as error
    if controller_bits not in (0, data_plane_bits):
        raise invalid(f"{what} has {controller_bits} bits, in p4_device_config {data_plane_bits}")


def _bind_action(info: p4i.P4Info, table: Table, ref: p4i.ActionRef, translations: Translations) -> BoundAction:
    action_info = next((each for each in info.actions if each.preamble.id == ref.id), None)
    if action_info is None:
        raise invalid(f"action id {ref.id:#010x} is not among the actions")
    action = _named({each.name: each for each in table.actions}, action_info.preamble.name, "action")
    parameters = _bind_parameters(action_info, action, translations)
    by_id = {parameter.id: parameter for parameter in parameters}
    return BoundAction(ref.id, action.name, ref.scope, parameters, by_id)


def _bind_parameters(info: p4i.Action, action: Action, translations: Translations) -> tuple[BoundParameter, ...]:
    if len(info.params) != len(action.parameters):
        raise invalid(
            f"action {action.name!r} has {len(info.params)} parameters, in p4_device_config {len(action.parameters)}"
        )
    bound = []
    for parameter, in_program in zip(info.params, action.parameters, strict=True):
        what = f"action {action.name!r}, parameter {parameter.name!r}"
        width_bits = in_program.width_bits
        translation = translations.of(parameter.type_name.name, width_bits)
        if translation is None:
            _check_width(what, parameter.bitwidth, width_bits)
        bound.append(BoundParameter(parameter.id, parameter.name, width_bits, translation))
    return tuple(bound)


def _bind_profile(program: Program, info: p4i.ActionProfile, tables: Mapping[int, BoundTable]) -> BoundProfile:
    name = info.preamble.name
    profile = _named(program.action_profiles, name, "action profile")
    with place(f"action profile {name!r}"):
        if info.with_selector != (profile.selector_algorithm is not None):
            raise invalid("with_selector does not fit p4_device_config")
        users = [lookup(tables, number, "table") for number in info.table_ids]
        if not users:
            raise invalid("it has no table_ids")
        return BoundProfile(info.preamble.id, name, info, users[0].actions)


def _bind_value_set(program: Program, info: p4i.ValueSet, translations: Translations) -> BoundValueSet:
    name = info.preamble.name
    value_set = _named(program.value_sets, name, "value set")
    fields = []
    for match in info.match:
        with place(f"value set {name!r}, field {match.name!r}"):
            # p4_device_config has only the total width of all fields
            width_bits = value_set.width_bits if len(info.match) == 1 else match.bitwidth
            translation = translations.of(match.type_name.name, width_bits)
            if translation is not None and len(info.match) > 1:
                raise invalid("translated types are supported in value sets of one field only")
            if translation is None and 0 < match.bitwidth != width_bits:
                raise invalid(f"it has {match.bitwidth} bits, in p4_device_config {width_bits}")
            fields.append(BoundField(match.id, match.name, match.match_type, width_bits, translation))
    p4info_width_bits = sum(each.width_bits for each in fields)
    if p4info_width_bits != value_set.width_bits:
        raise invalid(
            f"value set {name!r} has fields of {p4info_width_bits} bits, in p4_device_config {value_set.width_bits}"
        )
    return BoundValueSet(info.preamble.id, name, info.size, tuple(fields))


def _check_arrays(program: Program, info: p4i.P4Info) -> None:
    sections: list[tuple[str, Iterable[Any], Mapping[str, Any]]] = [
        ("counter", info.counters, program.counter_arrays),
        ("meter", info.meters, program.meter_arrays),
        ("register", info.registers, program.register_arrays),
    ]
    for what, objects, arrays in sections:
        for each in objects:
            array = _named(arrays, each.preamble.name, what)
            if each.size != array.size:
                raise invalid(f"{what} {array.name!r} has {each.size} cells, in p4_device_config {array.size}")
    for meter in info.meters:
        _meter_type(meter)
    lists = {each.name: each for each in program.learn_lists.values()}
    for digest in info.digests:
        _named(lists, digest.preamble.name, "digest")


def _packet_metadata(
    info: p4i.P4Info, program: Program, name: str, translations: Translations
) -> tuple[BoundMetadata, ...]:
    for header in info.controller_packet_metadata:
        if header.preamble.name == name:
            widths_bits = _header_widths_bits(program, header)
            if sum(widths_bits) % 8:
                raise invalid(f"controller header {name!r} has {sum(widths_bits)} bits, not whole bytes")
            return tuple(
                BoundMetadata(
                    field.id,
                    field.name,
                    width_bits,
                    any(annotation.startswith("@padding") for annotation in field.annotations),
                    translations.of(field.type_name.name, width_bits),
                )
                for field, width_bits in zip(header.metadata, widths_bits, strict=True)
            )
    return ()


def _header_widths_bits(program: Program, info: p4i.ControllerPacketMetadata) -> list[int]:
    """Return the widths in the packet. P4Info has the controller's widths, which differ for translated types."""
    names = [field.name for field in info.metadata]
    if any(field.HasField("type_name") for field in info.metadata):
        for header_type in program.header_types.values():
            if [field.name for field in header_type.fields] == names:
                return [field.width_bits for field in header_type.fields]
        raise invalid(f"controller header {info.preamble.name!r}: no header type has the fields {names}")
    return [field.bitwidth for field in info.metadata]
