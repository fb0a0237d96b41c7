"""P4Info that does not describe the program it comes with is refused (P4Runtime §14), by name and with both values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from finsy.proto import p4i, p4r
from router_program import (
    ACL,
    COUNTER,
    DENY,
    DIRECT_COUNTER,
    ECMP,
    LEARN,
    METER,
    REGISTER,
    ROUTE,
    ROUTES,
    router_config,
    router_document,
)

from tests.refusals import refused
from weft.switch.backend import CapacityExceededError
from weft.switch.bmv2json import load_program
from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.errors import INVALID_ARGUMENT, RequestError
from weft.switch.p4runtime.pipeline import bind
from weft.switch.p4runtime.read_answer import MAX_ENTITIES
from weft.switch.p4runtime.translation import Ports

Change = Callable[[p4i.P4Info], object]


def table(info: p4i.P4Info, number: int) -> p4i.Table:
    return next(each for each in info.tables if each.preamble.id == number)


def action(info: p4i.P4Info, number: int) -> p4i.Action:
    return next(each for each in info.actions if each.preamble.id == number)


def setting(path: Callable[[p4i.P4Info], object], name: str, value: object) -> Change:
    return lambda info: setattr(path(info), name, value)


def swap_fields(info: p4i.P4Info) -> None:
    first, second = table(info, ACL).match_fields[0], table(info, ACL).match_fields[2]
    first.name, second.name = second.name, first.name


def unit(info: p4i.P4Info) -> None:
    info.meters[0].spec.unit = p4i.MeterSpec.BYTES


def unknown_unit(info: p4i.P4Info) -> None:
    info.meters[0].spec.unit = 77


def second_field(info: p4i.P4Info) -> None:
    info.value_sets[0].match.add(id=2, name="other", bitwidth=16, match_type=p4i.MatchField.EXACT)


def second_field_of_the_same_id(info: p4i.P4Info) -> None:
    second_field(info)
    info.value_sets[0].match[1].id = info.value_sets[0].match[0].id


def narrow_register(info: p4i.P4Info) -> None:
    info.registers[0].type_spec.bitstring.bit.bitwidth = 16


def narrow_digest(info: p4i.P4Info) -> None:
    info.type_info.structs["digest_t"].members[0].type_spec.bitstring.bit.bitwidth = 32


def short_digest(info: p4i.P4Info) -> None:
    del info.type_info.structs["digest_t"].members[1]


CASES: list[tuple[Change, str]] = [
    (
        setting(lambda info: table(info, ROUTES).match_fields[0], "bitwidth", 48),
        "table 'routes': match field 'ipv4.dst' has 48 bits, in p4_device_config 32",
    ),
    (
        setting(lambda info: table(info, ROUTES).match_fields[0], "match_type", p4i.MatchField.EXACT),
        "table 'routes': match field 'ipv4.dst' is 'lpm' in p4_device_config",
    ),
    (setting(lambda info: table(info, ROUTES).match_fields[0], "id", 0), "match field 'ipv4.dst' has no id"),
    (
        setting(lambda info: table(info, ACL).match_fields[1], "id", 1),
        "table 'acl': match fields 'ipv4.src' and 'ipv4.ttl' have the same id 1",
    ),
    (
        swap_fields,
        r"table 'acl': the order of match fields is \['ipv4.protocol', .*, in p4_device_config \['ipv4.src'",
    ),
    (setting(lambda info: table(info, ACL), "size", 9), "table 'acl': the size is 9, in p4_device_config 8"),
    (
        setting(lambda info: table(info, ECMP), "implementation_id", 0),
        "table 'ecmp': the action profile is None, in p4_device_config selector",
    ),
    (
        setting(lambda info: table(info, ROUTES), "const_default_action_id", LEARN),
        "table 'routes': const_default_action_id 0x01000006 is not in p4info",
    ),
    (
        lambda info: table(info, ROUTES).direct_resource_ids.append(METER),
        f"table 'routes': direct_resource_id {METER:#010x} is not in p4info",
    ),
    (
        setting(lambda info: table(info, ACL), "idle_timeout_behavior", p4i.Table.NOTIFY_CONTROL),
        "table 'acl': idle_timeout_behavior is NOTIFY_CONTROL",
    ),
    (
        setting(lambda info: action(info, ROUTE).params[1], "bitwidth", 64),
        "action 'route', parameter 'mac' has 64 bits, in p4_device_config 48",
    ),
    (
        setting(lambda info: action(info, ROUTE).params[1], "id", 1),
        "action 'route': parameters 'port' and 'mac' have the same id 1",
    ),
    (
        setting(lambda info: action(info, DENY).preamble, "id", 0x02000077),
        "action 'deny' has the id 0x02000077, which does not begin with 0x01",
    ),
    (
        setting(lambda info: info.counters[0], "size", 8),
        "counter 'counter' has 8 cells, in p4_device_config 16",
    ),
    (
        setting(lambda info: info.registers[0], "size", 17),
        "register 'register' has 17 cells, in p4_device_config 16",
    ),
    (narrow_register, "register 'register' has cells of 16 bits, in p4_device_config 32"),
    (unit, "meter 'meter': the unit is BYTES, in p4_device_config PACKETS"),
    (unknown_unit, "meter 'meter': the unit is 77, in p4_device_config PACKETS"),
    (second_field, "value set 'ip_types' has fields of 32 bits, in p4_device_config 16"),
    (
        second_field_of_the_same_id,
        "value set 'ip_types': match fields 'type' and 'other' have the same id 1",
    ),
    (narrow_digest, "digest 'digest_t': value 1 has 32 bits, in p4_device_config 48"),
    (short_digest, "digest 'digest_t': the number of values is 1, in p4_device_config 2"),
    (
        setting(lambda info: info.direct_counters[0], "direct_table_id", ACL),
        "direct counter 'routes_counter': it is not among the direct_resource_ids of its table 'acl'",
    ),
    (
        setting(lambda info: info.action_profiles[0], "size", 7),
        "action profile 'selector': the size is 7, in p4_device_config 8",
    ),
    (
        setting(lambda info: info.value_sets[0].match[0], "bitwidth", 8),
        "value set 'ip_types', field 'type': it has 8 bits, in p4_device_config 16",
    ),
]


@pytest.mark.parametrize(("change", "message"), CASES, ids=[message[:40] for _, message in CASES])
def test_disagreement_is_reported(change: Change, message: str) -> None:
    config = router_config()
    change(config.p4info)
    with pytest.raises(RequestError, match=f"^p4info: (?:.*: )?{message}") as caught:
        bind(config.SerializeToString(), Ports(510))
    assert caught.value.code == INVALID_ARGUMENT


def test_what_agrees_is_taken() -> None:
    assert COUNTER in bind(router_config().SerializeToString(), Ports(510)).counters
    assert DIRECT_COUNTER in table(router_config().p4info, ROUTES).direct_resource_ids


def large(cells: int, count: int = 1) -> bytes:
    """The router, with more registers of `cells` cells."""
    document = router_document().decode()
    more = "".join(
        f', {{"name": "large{number}", "id": {number + 1}, "size": {cells}, "bitwidth": 64}}' for number in range(count)
    )
    at = document.index("]", document.index('"register_arrays"'))
    return (document[:at] + more + document[at:]).encode()


@pytest.mark.parametrize("switch", [NativeSwitch(name="large"), OracleSwitch()], ids=["native", "oracle"])
def test_arrays_beyond_memory_are_refused(switch: NativeSwitch | OracleSwitch) -> None:
    program = load_program(large(1 << 24, 40))
    with refused(CapacityExceededError, problem="(at most 4294967296)"):
        switch.verify(program)
    with pytest.raises(CapacityExceededError):
        switch.load(program)


def test_all_cells_are_read_in_messages_made_as_they_are_taken() -> None:
    """The values are of the moment of the request; messages are made when the controller takes them."""
    switch = OracleSwitch()
    device = Device(1, switch, 510)
    config = router_config()
    config.p4_device_config = large(100_000)
    register = config.p4info.registers.add()
    register.CopyFrom(config.p4info.registers[0])
    register.preamble.id, register.preamble.name, register.size = REGISTER + 1, "large0", 100_000
    register.type_spec.bitstring.bit.bitwidth = 64
    device.load(config)
    switch.register_write("large0", 99_999, 7)
    query = p4r.Entity(register_entry=p4r.RegisterEntry(register_id=REGISTER + 1))
    messages = device.read(p4r.ReadRequest(device_id=1, entities=[query]))
    first = next(messages)
    assert len(first.entities) == MAX_ENTITIES
    switch.register_write("large0", 99_999, 8)
    cells = [each.register_entry for message in [first, *messages] for each in message.entities]
    assert [cell.index.index for cell in cells] == list(range(100_000))
    assert cells[-1].data.bitstring == b"\x07"
