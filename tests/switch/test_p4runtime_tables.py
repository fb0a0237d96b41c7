"""Table entries and direct resources over gRPC (P4Runtime §9.1)."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r, rpc_code
from p4runtime_client import P4RuntimeClient, batch_errors
from router_program import (
    ACL,
    ACL_SIZE,
    DENY,
    NO_ACTION,
    PERMIT,
    POLICE,
    ROUTE,
    ROUTES,
    SET_PORT,
    entity,
    update,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from weft.switch.oracle import OracleSwitch

ROUTE_ACTION = (
    f'action {{ action {{ action_id: {ROUTE} params {{ param_id: 1 value: "\\x03" }}'
    ' params { param_id: 2 value: "\\x00\\x02\\x05" } } }'
)


def lpm(value: str, length: int) -> str:
    return f'match {{ field_id: 1 lpm {{ value: "{value}" prefix_len: {length} }} }}'


def route(value: str = "\\n\\x00\\x00\\x00", length: int = 8, more: str = "", action: str = ROUTE_ACTION) -> str:
    return f"table_entry {{ table_id: {ROUTES} {lpm(value, length)} {action} {more} }}"


def acl(match: str = "", priority: int = 5, action: int = DENY, more: str = "") -> str:
    return (
        f"table_entry {{ table_id: {ACL} {match} priority: {priority}"
        f" action {{ action {{ action_id: {action} }} }} {more} }}"
    )


def test_an_entry_is_read_back_in_canonical_form(client: P4RuntimeClient) -> None:
    client.write("INSERT", route("\\x00\\n\\x00\\x00\\x00", more='metadata: "m" controller_metadata: 9'))
    (found,) = client.read(entity(f"table_entry {{ table_id: {ROUTES} }}"))
    expected = route(more='metadata: "m" controller_metadata: 9').replace('"\\x00\\x02\\x05"', '"\\x02\\x05"')
    assert found == entity(expected)


def test_a_route_forwards_and_counts(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    client.write("INSERT", route())
    packet = bytes(Ether() / IP(src="10.1.0.1", dst="10.2.0.2", ttl=9) / UDP() / b"data")
    (output,) = switches[1].process(1, packet)
    sent = Ether(output.data)
    assert output.port == 3
    assert sent[IP].ttl == 8
    assert sent.dst == "00:00:00:00:02:05"
    assert sent[IP].chksum == IP(bytes(sent[IP])).__class__(_without_checksum(sent)).chksum
    (found,) = client.read(entity(f"table_entry {{ table_id: {ROUTES} counter_data {{}} }}"))
    assert found.table_entry.counter_data == p4r.CounterData(packet_count=1, byte_count=len(packet))


def _without_checksum(packet: Ether) -> bytes:
    copy = packet[IP].copy()
    del copy.chksum
    return bytes(copy)


def test_modify_and_delete(client: P4RuntimeClient) -> None:
    client.write("INSERT", route())
    no_action = f"action {{ action {{ action_id: {NO_ACTION} }} }}"
    client.write("MODIFY", route(action=no_action))
    (found,) = client.read(entity(f"table_entry {{ table_id: {ROUTES} }}"))
    assert found.table_entry.action.action.action_id == NO_ACTION
    client.write(
        "DELETE",
        f"table_entry {{ table_id: {ROUTES} {lpm(chr(10), 8)} }}".replace(chr(10), "\\n\\x00\\x00\\x00"),
    )
    assert client.read(entity("table_entry {}")) == []


def test_modify_without_action_keeps_the_action(client: P4RuntimeClient) -> None:
    client.write("INSERT", route())
    client.write("MODIFY", route(action="", more='metadata: "new"'))
    (found,) = client.read(entity(f"table_entry {{ table_id: {ROUTES} }}"))
    assert found.table_entry.metadata == b"new"
    assert found.table_entry.action.action.action_id == ROUTE


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (
            "table_entry { table_id: 99 }",
            "INVALID_ARGUMENT",
            "unknown table id 0x00000063 (valid: '0x02000001'",
        ),
        (route(action=""), "INVALID_ARGUMENT", "table 'routes': action is not set"),
        (
            route(action="action { action { action_id: 77 } }"),
            "INVALID_ARGUMENT",
            "unknown action id 0x0000004d (valid: '0x01000001 (route)'",
        ),
        (
            route(action=f"action {{ action {{ action_id: {ROUTE} }} }}"),
            "INVALID_ARGUMENT",
            "table 'routes': action 'route': parameter 'port' is missing",
        ),
        (
            route(action=ROUTE_ACTION.replace('"\\x03"', '"\\x02\\x00"')),
            "OUT_OF_RANGE",
            "parameter 'port': value 0x200 does not fit 9 bits",
        ),
        (route(action=ROUTE_ACTION.replace('"\\x03"', '""')), "OUT_OF_RANGE", "the byte string is empty"),
        (route("\\x01\\x00\\x00\\x00\\x00"), "OUT_OF_RANGE", "match field 'ipv4.dst': value 0x100000000"),
        (route("\\n\\x00\\x00\\x01"), "INVALID_ARGUMENT", "bits set behind its prefix of 8 bits"),
        (route(length=33), "INVALID_ARGUMENT", "prefix length 33 is out of range (valid: 1 to 32"),
        (route(length=0), "INVALID_ARGUMENT", "leave the field out to match everything"),
        (route(more="priority: 3"), "INVALID_ARGUMENT", "priority 3 is set, but no field is ternary"),
        (route(more="is_const: true"), "INVALID_ARGUMENT", "is_const"),
        (route(more="meter_config {}"), "INVALID_ARGUMENT", "the table has no direct meter"),
        (route(more="counter_data { packet_count: -1 }"), "INVALID_ARGUMENT", "is negative"),
        (route(more="idle_timeout_ns: -1"), "INVALID_ARGUMENT", "is negative"),
        (
            route(action=f"action {{ action {{ action_id: {DENY} }} }}"),
            "PERMISSION_DENIED",
            "action 'deny' may only be used as default action",
        ),
        (route(action="action { action_profile_member_id: 1 }"), "INVALID_ARGUMENT", "has no action profile"),
        (
            route().replace("field_id: 1", "field_id: 4"),
            "INVALID_ARGUMENT",
            "unknown match field id 4 (valid: '1 (ipv4.dst)')",
        ),
        (
            f'table_entry {{ table_id: {ROUTES} {ROUTE_ACTION} match {{ field_id: 1 exact {{ value: "\\x01" }} }} }}',
            "INVALID_ARGUMENT",
            "expected match type 'lpm', got 'exact'",
        ),
        (acl(priority=0), "INVALID_ARGUMENT", "priority 0 is not positive"),
        (
            acl('match { field_id: 1 ternary { value: "\\x03" mask: "\\x01" } }'),
            "INVALID_ARGUMENT",
            "bits set outside its mask 0x1",
        ),
        (
            acl('match { field_id: 1 ternary { value: "\\x00" mask: "\\x00" } }'),
            "INVALID_ARGUMENT",
            "leave the field out",
        ),
        (
            acl('match { field_id: 2 range { low: "\\x09" high: "\\x03" } }'),
            "INVALID_ARGUMENT",
            "range starts at 0x9, above its end 0x3",
        ),
        (
            acl('match { field_id: 2 range { low: "\\x00" high: "\\xff" } }'),
            "INVALID_ARGUMENT",
            "matches everything",
        ),
        (acl(more="idle_timeout_ns: 5"), "INVALID_ARGUMENT", "does not support idle timeouts"),
        (
            f"table_entry {{ table_id: {POLICE} action {{ action {{ action_id: {NO_ACTION} }} }} }}",
            "INVALID_ARGUMENT",
            "match field 'ingress_port': an exact match is missing",
        ),
        (
            f"table_entry {{ table_id: {ACL} is_default_action: true }}",
            "INVALID_ARGUMENT",
            "only be modified",
        ),
    ],
)
def test_a_bad_insert_is_refused_with_place_and_reason(
    client: P4RuntimeClient, text: str, code: str, message: str
) -> None:
    error = client.write_error("INSERT", text)
    assert rpc_code.Code.Name(error.canonical_code) == code
    assert message in error.message
    assert client.read(entity("table_entry {}")) == []


def test_duplicates_missing_entries_and_full_tables(client: P4RuntimeClient) -> None:
    client.write("INSERT", route())
    assert client.write_error("INSERT", route()).canonical_code == rpc_code.ALREADY_EXISTS
    assert client.write_error("MODIFY", route(length=9)).canonical_code == rpc_code.NOT_FOUND
    assert client.write_error("DELETE", route(length=9)).canonical_code == rpc_code.NOT_FOUND
    for priority in range(1, ACL_SIZE + 1):
        client.write("INSERT", acl(priority=priority))
    full = client.write_error("INSERT", acl(priority=ACL_SIZE + 1))
    assert full.canonical_code == rpc_code.RESOURCE_EXHAUSTED


def test_a_batch_goes_on_after_an_error_and_says_which_failed(client: P4RuntimeClient) -> None:
    updates = [update("INSERT", route(length=n)) for n in (8, 0, 9)]
    with pytest.raises(grpc.RpcError) as caught:
        client.write_updates(*updates)
    codes = [error.canonical_code for error in batch_errors(caught.value)]
    assert codes == [rpc_code.OK, rpc_code.INVALID_ARGUMENT, rpc_code.OK]
    assert "1 of 3 updates failed; number 1: table 'routes'" in caught.value.details()
    assert len(client.read(entity("table_entry {}"))) == 2


def test_a_large_failing_batch_fits_the_metadata(client: P4RuntimeClient) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        client.write_updates(*[update("INSERT", route(length=0))] * 80)
    assert caught.value.code() == grpc.StatusCode.UNKNOWN
    codes = [error.canonical_code for error in batch_errors(caught.value)]
    assert codes == [rpc_code.INVALID_ARGUMENT] * 80


def test_the_default_action_can_be_set_and_reset(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    query = entity(f"table_entry {{ table_id: {ACL} is_default_action: true }}")
    (before,) = client.read(query)
    assert before.table_entry.action.action.action_id == PERMIT
    action = f"action {{ action {{ action_id: {DENY} }} }}"
    client.write("MODIFY", f"table_entry {{ table_id: {ACL} is_default_action: true {action} }}")
    (during,) = client.read(query)
    assert during.table_entry.action.action.action_id == DENY
    client.write("INSERT", route())
    packet = bytes(Ether() / IP(dst="10.2.0.2") / UDP())
    assert switches[1].process(1, packet) == []
    client.write("MODIFY", f"table_entry {{ table_id: {ACL} is_default_action: true }}")
    assert client.read(query) == [before]
    assert [output.port for output in switches[1].process(1, packet)] == [3]
    denied = client.write_error(
        "MODIFY",
        f"table_entry {{ table_id: {ROUTES} is_default_action: true"
        f" action {{ action {{ action_id: {NO_ACTION} }} }} }}",
    )
    assert denied.canonical_code == rpc_code.PERMISSION_DENIED
    assert (
        client.write_error(
            "MODIFY", f"table_entry {{ table_id: {ACL} is_default_action: true priority: 1 {action} }}"
        ).canonical_code
        == rpc_code.INVALID_ARGUMENT
    )


def test_filters_of_reads(client: P4RuntimeClient) -> None:
    client.write("INSERT", acl(priority=1, more='metadata: "a"'))
    client.write("INSERT", acl('match { field_id: 3 optional { value: "\\x11" } }', priority=2, action=PERMIT))
    client.write("INSERT", route())

    def priorities(text: str) -> list[int]:
        found = client.read(entity(f"table_entry {{ {text} }}"))
        return sorted(each.table_entry.priority for each in found)

    assert priorities("") == [0, 1, 2]
    assert priorities(f"table_id: {ACL}") == [1, 2]
    assert priorities(f"table_id: {ACL} priority: 2") == [2]
    assert priorities(f'table_id: {ACL} metadata: "a"') == [1]
    assert priorities(f"table_id: {ACL} action {{ action {{ action_id: {PERMIT} }} }}") == [2]
    assert priorities(f'table_id: {ACL} priority: 2 match {{ field_id: 3 optional {{ value: "\\x00\\x11" }} }}') == [2]


def test_an_unknown_table_in_a_read_is_an_error_for_that_query_alone(client: P4RuntimeClient) -> None:
    client.write("INSERT", route())
    request = p4r.ReadRequest(device_id=1, entities=[entity("table_entry { table_id: 5 }"), entity("table_entry {}")])
    responses = client.stub.Read(request)
    assert len(next(responses).entities) == 1
    with pytest.raises(grpc.RpcError) as caught:
        next(responses)
    codes = [error.canonical_code for error in batch_errors(caught.value)]
    assert codes == [rpc_code.INVALID_ARGUMENT, rpc_code.OK]


def test_direct_counters_and_meters(client: P4RuntimeClient) -> None:
    client.write("INSERT", route(more="counter_data { packet_count: 4 byte_count: 400 }"))
    entry = f"table_entry {{ table_id: {ROUTES} " + lpm("\\n\\x00\\x00\\x00", 8) + " }"
    (read,) = client.read(entity(f"direct_counter_entry {{ {entry} }}"))
    assert read.direct_counter_entry.data.packet_count == 4
    client.write("MODIFY", f"direct_counter_entry {{ {entry} data {{ packet_count: 1 }} }}")
    (read,) = client.read(entity("direct_counter_entry { table_entry {} }"))
    assert read.direct_counter_entry.data == p4r.CounterData(packet_count=1)
    assert client.write_error("INSERT", f"direct_counter_entry {{ {entry} }}").canonical_code == (
        rpc_code.INVALID_ARGUMENT
    )
    missing = client.write_error("MODIFY", f"direct_counter_entry {{ {entry.replace('8 }', '9 }')} }}")
    assert missing.canonical_code == rpc_code.NOT_FOUND

    config = "cir: 1 cburst: 2 pir: 3 pburst: 4"
    client.write("INSERT", acl(more=f"meter_config {{ {config} }}"))
    (read,) = client.read(entity(f"direct_meter_entry {{ table_entry {{ table_id: {ACL} }} }}"))
    assert read.direct_meter_entry.config == p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
    client.write("MODIFY", f"direct_meter_entry {{ table_entry {{ table_id: {ACL} priority: 5 }} }}")
    (read,) = client.read(entity(f"table_entry {{ table_id: {ACL} meter_config {{}} }}"))
    assert not read.table_entry.HasField("meter_config")


def test_set_port_belongs_to_another_table(client: P4RuntimeClient) -> None:
    error = client.write_error("INSERT", acl(action=SET_PORT))
    assert error.canonical_code == rpc_code.INVALID_ARGUMENT
    assert "(valid: '0x01000003 (deny)', '0x01000002 (permit)')" in error.message


def test_the_time_since_the_last_hit_needs_a_table_with_timeouts(client: P4RuntimeClient) -> None:
    client.write("INSERT", route())
    (found,) = client.read(entity(f"table_entry {{ table_id: {ROUTES} time_since_last_hit {{}} }}"))
    assert found.table_entry.HasField("time_since_last_hit")
    with pytest.raises(grpc.RpcError) as caught:
        client.read(entity(f"table_entry {{ table_id: {ACL} time_since_last_hit {{}} }}"))
    (error,) = batch_errors(caught.value)
    assert error.canonical_code == rpc_code.INVALID_ARGUMENT
