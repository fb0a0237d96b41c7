"""Meters over gRPC (P4Runtime §9.4): configurations of each type, counts of colours, and what a rollback restores."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4i, p4r, rpc_code
from p4runtime_client import P4RuntimeClient, batch_errors
from router_program import (
    ACL,
    ECMP,
    METER,
    PERMIT,
    POLICE,
    POLICE_ACTION,
    SET_PORT,
    entity,
    router_config,
    update,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from weft.switch.oracle import OracleSwitch

PACKET = bytes(Ether() / IP(src="10.0.0.1", dst="10.0.0.9") / UDP())
CELL = f"meter_entry {{ meter_id: {METER} index {{ index: 2 }} "
ACL_ENTRY = f"table_id: {ACL} priority: 5"
ACL_PERMIT = f"{ACL_ENTRY} action {{ action {{ action_id: {PERMIT} }} }}"
TWO_PACKETS = "{ cir: 0 cburst: 1 pir: 0 pburst: 2 }"
"""The first packet is green, the second yellow, the others red."""
FAILING = update("DELETE", f"table_entry {{ table_id: {ACL} priority: 99 }}")
SINGLE_RATE, TWO_COLOURS = p4i.MeterSpec.SINGLE_RATE_THREE_COLOR, p4i.MeterSpec.SINGLE_RATE_TWO_COLOR


def codes(client: P4RuntimeClient, *entities: str) -> list[str]:
    return [rpc_code.Code.Name(client.write_error("MODIFY", each).canonical_code) for each in entities]


def police(client: P4RuntimeClient) -> None:
    """Packets of port 1 go through cell 2."""
    client.write(
        "INSERT",
        f'table_entry {{ table_id: {POLICE} match {{ field_id: 1 exact {{ value: "\\x01" }} }} action {{ action'
        f' {{ action_id: {POLICE_ACTION} params {{ param_id: 1 value: "\\x02" }} }} }} }}',
    )


def counted(data: p4r.MeterCounterData) -> list[int]:
    """Packets by colour; the bytes fit them."""
    cells = (data.green, data.yellow, data.red)
    assert [cell.byte_count for cell in cells] == [cell.packet_count * len(PACKET) for cell in cells]
    return [cell.packet_count for cell in cells]


def cell_counts(client: P4RuntimeClient) -> list[int]:
    (found,) = client.read(entity(CELL + "counter_data {} }"))
    return counted(found.meter_entry.counter_data)


def entry_counts(client: P4RuntimeClient) -> list[int]:
    (found,) = client.read(entity(f"table_entry {{ table_id: {ACL} meter_counter_data {{}} }}"))
    return counted(found.table_entry.meter_counter_data)


def send(switch: OracleSwitch, packets: int) -> None:
    for _ in range(packets):
        switch.process(1, PACKET)


def test_configurations_of_two_rates(client: P4RuntimeClient) -> None:
    config = "config { cir: 1 cburst: 2 pir: 3 pburst: 4 } }"
    client.write("MODIFY", CELL + config)
    assert client.read(entity(CELL + "}")) == [entity(CELL + config)]
    assert sum(each.meter_entry.HasField("config") for each in client.read(entity("meter_entry {}"))) == 1
    client.write("MODIFY", CELL + "}")
    assert client.read(entity(CELL + "}")) == [entity(CELL + "}")]
    bad = ("config { cir: 3 pir: 1 } }", "config { cir: -1 } }", "config { eburst: 1 } }")
    assert codes(client, *(CELL + each for each in bad)) == ["INVALID_ARGUMENT"] * 3
    assert client.write_error("DELETE", CELL + "}").canonical_code == rpc_code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("meter_type", "config", "expected"),
    [
        (SINGLE_RATE, "cir: 0 cburst: 1 pburst: 1 eburst: 2", [1, 2, 1]),
        (TWO_COLOURS, "cburst: 2 pburst: 2", [2, 0, 2]),
    ],
)
def test_meters_of_a_single_rate(
    client: P4RuntimeClient,
    switches: dict[int, OracleSwitch],
    meter_type: p4i.MeterSpec.Type.ValueType,
    config: str,
    expected: list[int],
) -> None:
    pipeline = router_config()
    for meter in (*pipeline.p4info.meters, *pipeline.p4info.direct_meters):
        meter.spec.type = meter_type
    client.set_pipeline(config=pipeline)
    police(client)
    client.write("MODIFY", CELL + f"config {{ {config} }} }}")
    client.write("INSERT", f"table_entry {{ {ACL_PERMIT} meter_config {{ {config} }} }}")
    assert client.read(entity(CELL + "}")) == [entity(CELL + f"config {{ {config} }} }}")]
    send(switches[1], 4)
    assert cell_counts(client) == entry_counts(client) == expected
    bad = ["cir: 1", "cburst: 1", *(["eburst: 1"] if meter_type == TWO_COLOURS else ["eburst: -1"])]
    assert codes(client, *(CELL + f"config {{ {each} }} }}" for each in bad)) == ["INVALID_ARGUMENT"] * 3


def test_an_unknown_type_of_meter_is_refused(client: P4RuntimeClient) -> None:
    pipeline = router_config()
    pipeline.p4info.meters[0].spec.type = 9  # type: ignore[assignment]
    with pytest.raises(grpc.RpcError, match=r"unknown type 9.*TWO_RATE_THREE_COLOR"):
        client.set_pipeline(config=pipeline)


def test_counts_of_an_indirect_meter(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    police(client)
    send(switches[1], 2)  # not configured yet: green
    client.write("MODIFY", CELL + f"config {TWO_PACKETS} }}")
    send(switches[1], 5)
    assert cell_counts(client) == [3, 1, 3]
    (without,) = client.read(entity(CELL + "}"))
    assert not without.meter_entry.HasField("counter_data")
    assert codes(client, CELL + "counter_data { red { packet_count: 1 } } }") == ["INVALID_ARGUMENT"]
    client.write("MODIFY", CELL + f"config {TWO_PACKETS} counter_data {{}} }}")
    assert cell_counts(client) == [0, 0, 0]


def test_counts_of_a_direct_meter(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    client.write("INSERT", f"table_entry {{ {ACL_PERMIT} meter_counter_data {{ green {{}} }} }}")
    send(switches[1], 2)
    client.write("MODIFY", f"table_entry {{ {ACL_PERMIT} meter_config {TWO_PACKETS} }}")
    send(switches[1], 5)
    assert entry_counts(client) == [3, 1, 3]
    direct = f"direct_meter_entry {{ table_entry {{ {ACL_ENTRY} }}"
    (read,) = client.read(entity(f"{direct} counter_data {{}} }}"))
    assert counted(read.direct_meter_entry.counter_data) == [3, 1, 3]
    client.write("MODIFY", f"{direct} config {TWO_PACKETS} }}")
    assert entry_counts(client) == [3, 1, 3]
    client.write("MODIFY", f"{direct} config {TWO_PACKETS} counter_data {{}} }}")
    assert entry_counts(client) == [0, 0, 0]
    bad = "green { byte_count: 1 }"
    assert codes(
        client,
        f"{direct} counter_data {{ {bad} }} }}",
        f"table_entry {{ {ACL_PERMIT} meter_counter_data {{ {bad} }} }}",
        f"table_entry {{ table_id: {ACL} priority: 6 meter_counter_data {{}} }}",
    ) == ["INVALID_ARGUMENT"] * 2 + ["NOT_FOUND"]


@pytest.mark.parametrize(
    "change",
    [
        update("MODIFY", CELL + "config { cburst: 9 pburst: 9 } counter_data {} }"),
        update("MODIFY", f"meter_entry {{ meter_id: {METER} counter_data {{}} }}"),
        update("MODIFY", f"table_entry {{ {ACL_PERMIT} meter_counter_data {{}} }}"),
        update("DELETE", f"table_entry {{ {ACL_ENTRY} }}"),
        update("MODIFY", f"direct_meter_entry {{ table_entry {{ {ACL_ENTRY} }} counter_data {{}} }}"),
    ],
    ids=lambda change: str(change.entity.WhichOneof("entity")),
)
def test_a_batch_taken_back_leaves_buckets_and_counts(
    client: P4RuntimeClient, switches: dict[int, OracleSwitch], change: p4r.Update
) -> None:
    police(client)
    client.write("MODIFY", CELL + f"config {TWO_PACKETS} }}")
    client.write("INSERT", f"table_entry {{ {ACL_PERMIT} meter_config {TWO_PACKETS} }}")
    send(switches[1], 1)
    with pytest.raises(grpc.RpcError) as caught:
        client.write_updates(change, FAILING, atomicity="ROLLBACK_ON_ERROR")
    assert [each.canonical_code for each in batch_errors(caught.value)] == [
        rpc_code.ABORTED,
        rpc_code.NOT_FOUND,
    ]
    assert cell_counts(client) == entry_counts(client) == [1, 0, 0]
    send(switches[1], 2)
    assert cell_counts(client) == entry_counts(client) == [1, 1, 1]


def test_a_random_set_uses_all_its_actions(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    actions = " ".join(
        f'action_profile_actions {{ action {{ action_id: {SET_PORT} params {{ param_id: 1 value: "\\{port}" }} }}'
        " weight: 1 }"
        for port in (5, 6, 7)
    )
    text = (
        f'table_entry {{ table_id: {ECMP} match {{ field_id: 1 exact {{ value: "\\n\\000\\000\\t" }} }}'
        f" action {{ action_profile_action_set {{ action_selection_mode: MODE {actions} }} }} }}"
    )
    client.write("INSERT", text.replace("MODE", "RANDOM"))
    assert client.read(entity(f"table_entry {{ table_id: {ECMP} }}")) == [entity(text.replace("MODE", "RANDOM"))]
    chosen = {switches[1].process(1, PACKET)[0].port for _ in range(100)}
    assert chosen == {5, 6, 7}
    client.write("MODIFY", text.replace("MODE", "HASH"))
    assert len({switches[1].process(1, PACKET)[0].port for _ in range(20)}) == 1
    assert codes(client, text.replace("MODE", "9")) == ["INVALID_ARGUMENT"]
