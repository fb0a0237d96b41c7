"""Action profiles, arrays, replication, value sets and digests over gRPC (P4Runtime §9)."""

from __future__ import annotations

import pytest
from finsy.proto import p4r, rpc_code
from p4runtime_client import P4RuntimeClient
from router_program import (
    CELLS,
    CLONE,
    COUNTER,
    DIGEST,
    ECMP,
    LEARN,
    MULTICAST,
    NO_ACTION,
    POLICE,
    POLICE_ACTION,
    PROFILE,
    REGISTER,
    SET_PORT,
    VALUE_SET,
    entity,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from weft.switch.oracle import OracleSwitch

IPV4 = bytes(Ether(src="02:00:00:00:00:07") / IP(src="10.0.0.1", dst="10.0.0.9") / UDP())
MATCH = 'match { field_id: 1 exact { value: "\\x0a\\x00\\x00\\x09" } }'

oracle_only = pytest.mark.parametrize("switches", ["oracle"], indirect=True)


def set_port(port: int) -> str:
    return f'action_id: {SET_PORT} params {{ param_id: 1 value: "\\x{port:02x}" }}'


def member(number: int, port: int = 1) -> str:
    return f"action_profile_member {{ action_profile_id: {PROFILE} member_id: {number} action {{ {set_port(port)} }} }}"


def group(number: int, members: str, max_size: int = 4) -> str:
    return f"action_profile_group {{ action_profile_id: {PROFILE} group_id: {number} max_size: {max_size} {members} }}"


def ecmp(action: str) -> str:
    return f"table_entry {{ table_id: {ECMP} {MATCH} action {{ {action} }} }}"


def police(action: int, params: str = "") -> str:
    return (
        f'table_entry {{ table_id: {POLICE} match {{ field_id: 1 exact {{ value: "\\x01" }} }}'
        f" action {{ action {{ action_id: {action} {params} }} }} }}"
    )


def codes(client: P4RuntimeClient, *updates: tuple[str, str]) -> list[str]:
    return [rpc_code.Code.Name(client.write_error(*update).canonical_code) for update in updates]


def ports(switch: OracleSwitch) -> list[int]:
    return [output.port for output in switch.process(1, IPV4)]


def test_members_and_groups(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    for number in (1, 2):
        client.write("INSERT", member(number, number))
    client.write("INSERT", group(1, "members { member_id: 1 weight: 1 } members { member_id: 2 weight: 3 }"))
    client.write("INSERT", ecmp("action_profile_group_id: 1"))
    (port,) = ports(switches[1])
    assert port in (1, 2)
    client.write("MODIFY", group(1, "members { member_id: 2 weight: 1 }"))
    assert ports(switches[1]) == [2]
    client.write("MODIFY", member(2, 7))
    assert ports(switches[1]) == [7]
    assert codes(
        client,
        ("INSERT", member(1)),
        ("DELETE", member(9)),
        ("DELETE", member(2)),
        ("DELETE", group(1, "")),
        ("INSERT", group(2, "members { member_id: 5 weight: 1 }")),
        ("INSERT", group(2, "members { member_id: 1 }")),
        ("INSERT", group(2, "members { member_id: 1 weight: 5 }")),
        ("INSERT", group(2, "members { member_id: 1 weight: 1 } members { member_id: 1 weight: 1 }")),
        ("INSERT", group(2, "", max_size=9)),
        ("MODIFY", group(1, "", max_size=3)),
        ("INSERT", member(0)),
        ("MODIFY", ecmp("action_profile_member_id: 44")),
        ("MODIFY", ecmp(f"action {{ {set_port(1)} }}")),
        (
            "MODIFY",
            ecmp(f"action_profile_action_set {{ action_profile_actions {{ action {{ {set_port(1)} }} weight: 1 }} }}"),
        ),
    ) == [
        "ALREADY_EXISTS",
        "NOT_FOUND",
        "FAILED_PRECONDITION",
        "FAILED_PRECONDITION",
        "NOT_FOUND",
        *["INVALID_ARGUMENT"] * 6,
        "NOT_FOUND",
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
    ]
    assert len(client.read(entity("action_profile_member {}"))) == 2
    (found,) = client.read(entity(f"action_profile_group {{ action_profile_id: {PROFILE} }}"))
    assert [each.member_id for each in found.action_profile_group.members] == [2]
    client.write("DELETE", ecmp("action_profile_group_id: 1"))
    client.write("DELETE", group(1, ""))
    client.write("DELETE", member(2))
    for number in range(2, 9):
        client.write("INSERT", member(number))
    assert codes(client, ("INSERT", member(99))) == ["RESOURCE_EXHAUSTED"]


def one_shot(*members: tuple[int, int]) -> str:
    listed = "".join(
        f"action_profile_actions {{ action {{ {set_port(port)} }} weight: {weight} }}" for port, weight in members
    )
    return ecmp(f"action_profile_action_set {{ {listed} }}")


@oracle_only
def test_one_shot_sets(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    client.write("INSERT", one_shot((5, 2)))
    assert ports(switches[1]) == [5]
    assert client.read(entity(f"table_entry {{ table_id: {ECMP} }}")) == [entity(one_shot((5, 2)))]
    # what is made for the set stays hidden
    assert client.read(entity("action_profile_member {}"), entity("action_profile_group {}")) == []
    client.write("MODIFY", one_shot((6, 1)))
    assert ports(switches[1]) == [6]
    assert codes(
        client,
        ("INSERT", one_shot((6, 1))),
        ("MODIFY", one_shot((6, 0))),
        ("MODIFY", one_shot((6, 3), (7, 2))),
        ("INSERT", member(1)),
    ) == ["ALREADY_EXISTS", *["INVALID_ARGUMENT"] * 3]
    assert ports(switches[1]) == [6]
    client.write("DELETE", one_shot())
    profile = switches[1].objects.profiles["selector"]
    assert (profile.members, profile.groups) == ({}, {})
    client.write("INSERT", member(1))


def test_counters(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    client.write("INSERT", police(POLICE_ACTION, 'params { param_id: 1 value: "\\x03" }'))
    switches[1].process(1, IPV4)
    (found,) = client.read(entity(f"counter_entry {{ counter_id: {COUNTER} index {{ index: 3 }} }}"))
    assert found.counter_entry.data == p4r.CounterData(packet_count=1, byte_count=len(IPV4))
    client.write("MODIFY", f"counter_entry {{ counter_id: {COUNTER} data {{ packet_count: 8 }} }}")
    everything = client.read(entity("counter_entry {}"))
    assert [each.counter_entry.data.packet_count for each in everything] == [8] * CELLS
    assert codes(
        client,
        ("INSERT", f"counter_entry {{ counter_id: {COUNTER} index {{ index: 3 }} }}"),
        ("MODIFY", f"counter_entry {{ counter_id: {COUNTER} index {{ index: -1 }} data {{}} }}"),
        ("MODIFY", f"counter_entry {{ counter_id: {COUNTER} index {{ index: {CELLS} }} data {{}} }}"),
        ("MODIFY", "counter_entry { counter_id: 5 }"),
    ) == ["INVALID_ARGUMENT", "INVALID_ARGUMENT", "OUT_OF_RANGE", "INVALID_ARGUMENT"]


def test_registers(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    client.write("INSERT", police(POLICE_ACTION, 'params { param_id: 1 value: "\\x03" }'))
    cell = f"register_entry {{ register_id: {REGISTER} index {{ index: 3 }} "
    client.write("MODIFY", cell + 'data { bitstring: "\\x00\\x01\\xff" } }')
    switches[1].process(1, IPV4)
    (found,) = client.read(entity(cell + "}"))
    assert found.register_entry.data.bitstring == b"\x02\x00"
    client.write("MODIFY", f'register_entry {{ register_id: {REGISTER} data {{ bitstring: "\\x07" }} }}')
    everything = client.read(entity("register_entry {}"))
    assert [each.register_entry.data.bitstring for each in everything] == [b"\x07"] * CELLS
    assert codes(
        client,
        ("MODIFY", cell + 'data { bitstring: "\\x01\\x00\\x00\\x00\\x00" } }'),
        ("MODIFY", cell + "data { bool: true } }"),
        ("MODIFY", cell + "}"),
        ("MODIFY", cell.replace("index: 3", "index: -3") + "data {} }"),
    ) == ["OUT_OF_RANGE", *["INVALID_ARGUMENT"] * 3]


def multicast(number: int, replicas: str) -> str:
    return f"packet_replication_engine_entry {{ multicast_group_entry {{ multicast_group_id: {number} {replicas} }} }}"


def session(number: int, body: str) -> str:
    return f"packet_replication_engine_entry {{ clone_session_entry {{ session_id: {number} {body} }} }}"


def test_multicast_groups(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    client.write("INSERT", police(MULTICAST, 'params { param_id: 1 value: "\\x05" }'))
    two = 'replicas { port: "\\x04" instance: 1 } replicas { egress_port: 6 instance: 2 }'
    client.write("INSERT", multicast(5, two + ' metadata: "m"'))
    assert ports(switches[1]) == [4, 6]
    assert client.read(entity(multicast(0, ""))) == [entity(multicast(5, two + ' metadata: "m"'))]
    client.write("MODIFY", multicast(5, 'replicas { port: "\\x00\\x09" }'))
    assert ports(switches[1]) == [9]
    assert codes(
        client,
        ("INSERT", multicast(5, "")),
        ("INSERT", multicast(0, "")),
        ("INSERT", multicast(65536, "")),
        ("MODIFY", multicast(6, "")),
        ("INSERT", multicast(6, 'replicas { port: "\\x01" } replicas { port: "\\x01" }')),
        ("INSERT", multicast(6, 'replicas { port: "\\x02\\x00" }')),
        ("INSERT", multicast(6, "replicas { instance: 1 }")),
        ("INSERT", multicast(6, 'replicas { port: "\\x01" instance: 65536 }')),
        ("INSERT", "packet_replication_engine_entry {}"),
    ) == [
        "ALREADY_EXISTS",
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
        "OUT_OF_RANGE",
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
    ]
    client.write("DELETE", multicast(5, ""))
    assert ports(switches[1]) == []


@oracle_only
def test_clone_sessions(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    client.write("INSERT", police(CLONE, 'params { param_id: 1 value: "\\x64" }'))
    body = 'replicas { port: "\\x08" } class_of_service: 2 packet_length_bytes: 20'
    client.write("INSERT", session(100, body))
    outputs = {output.port: output for output in switches[1].process(1, IPV4)}
    assert sorted(outputs) == [8]
    assert outputs[8].data == IPV4[:20]
    assert outputs[8].priority == 2
    assert client.read(entity(session(0, ""))) == [entity(session(100, body))]
    assert codes(
        client,
        ("INSERT", session(0, "")),
        ("INSERT", session(1, "class_of_service: 8")),
        ("INSERT", session(1, "packet_length_bytes: -1")),
        ("DELETE", session(1, "")),
    ) == [*["INVALID_ARGUMENT"] * 3, "NOT_FOUND"]
    client.write("DELETE", session(100, ""))
    assert ports(switches[1]) == []


def test_value_sets(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    odd = bytearray(IPV4)
    odd[12:14] = b"\x88\xb6"
    client.write("INSERT", one_shot((5, 1)))
    assert [output.port for output in switches[1].process(1, bytes(odd))] == [0]
    member_text = 'members { match { field_id: 1 exact { value: "\\x88\\xb6" } } }'
    client.write("MODIFY", f"value_set_entry {{ value_set_id: {VALUE_SET} {member_text} }}")
    assert [output.port for output in switches[1].process(1, bytes(odd))] == [5]
    assert client.read(entity("value_set_entry {}")) == [
        entity(f"value_set_entry {{ value_set_id: {VALUE_SET} {member_text} }}")
    ]
    many = "".join(member_text.replace("xb6", f"x{n:02x}") for n in range(5))
    assert codes(
        client,
        ("INSERT", f"value_set_entry {{ value_set_id: {VALUE_SET} }}"),
        ("MODIFY", f"value_set_entry {{ value_set_id: {VALUE_SET} {member_text} {member_text} }}"),
        ("MODIFY", f"value_set_entry {{ value_set_id: {VALUE_SET} {many} }}"),
    ) == ["INVALID_ARGUMENT", "ALREADY_EXISTS", "RESOURCE_EXHAUSTED"]


def digest(config: str) -> str:
    return f"digest_entry {{ digest_id: {DIGEST} config {{ {config} }} }}"


def test_digests_are_sent_once_until_acknowledged(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    client.write("INSERT", police(LEARN))
    switches[1].process(1, IPV4)  # not enabled yet: lost
    client.write("INSERT", digest("max_list_size: 1 ack_timeout_ns: 1000000000000"))
    assert len(client.read(entity("digest_entry {}"))) == 1
    switches[1].process(1, IPV4)
    first = client.receive("digest").digest
    assert first.digest_id == DIGEST
    (data,) = first.data
    assert [each.bitstring for each in data.struct.members] == [b"\x02\0\0\0\0\x07", b"\x01"]
    switches[1].process(1, IPV4)  # a duplicate: held back
    other = IPV4[:6] + b"\x02\0\0\0\0\x08" + IPV4[12:]
    switches[1].process(1, other)
    second = client.receive("digest").digest
    assert second.data[0].struct.members[0].bitstring == b"\x02\0\0\0\0\x08"
    assert second.list_id != first.list_id
    client.send(digest_ack={"digest_id": DIGEST, "list_id": first.list_id})
    client.send(digest_ack={"digest_id": 77})
    assert client.receive("error").error.canonical_code == rpc_code.INVALID_ARGUMENT
    switches[1].process(1, IPV4)
    assert client.receive("digest").digest.data == first.data
    assert codes(client, ("INSERT", digest("")), ("MODIFY", digest("max_list_size: -1"))) == [
        "ALREADY_EXISTS",
        "INVALID_ARGUMENT",
    ]
    client.write("DELETE", digest(""))
    assert client.read(entity("digest_entry {}")) == []


def test_a_digest_list_waits_for_its_timeout(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    client.write("INSERT", police(LEARN))
    client.write("INSERT", digest("max_list_size: 10 max_timeout_ns: 100000000"))
    switches[1].process(1, IPV4)
    switches[1].process(1, IPV4[:6] + b"\x02\0\0\0\0\x08" + IPV4[12:])
    assert len(client.receive("digest").digest.data) == 2


@oracle_only
def test_idle_timeouts_name_the_entry(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    text = (
        'table_entry { table_id: 0x02000001 match { field_id: 1 lpm { value: "\\x0a\\x00\\x00\\x00" prefix_len: 8 } }'
        f" action {{ action {{ action_id: {NO_ACTION} }} }} idle_timeout_ns: 1000 }}"
    )
    client.write("INSERT", text)
    switches[1].advance_time(1000)
    notification = client.receive("idle_timeout_notification").idle_timeout_notification
    assert list(notification.table_entry) == [entity(text).table_entry]


@pytest.mark.parametrize("kind", ["extern_entry {}", ""])
def test_other_entities_are_refused(client: P4RuntimeClient, kind: str) -> None:
    error = client.write_error("INSERT", kind)
    assert error.canonical_code == (rpc_code.UNIMPLEMENTED if kind else rpc_code.INVALID_ARGUMENT)
    assert "valid: 'table_entry'" in error.message
