"""Pipeline configs, streams and capabilities over gRPC (P4Runtime §14 to §17)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, rpc_code
from p4runtime_client import P4RuntimeClient, code_of
from router_program import ACL, DENY, router_config, router_json, update
from scapy.layers.l2 import Ether

from weft.switch.backend import PacketIn
from weft.switch.oracle import OracleSwitch
from weft.switch.p4runtime.outbox import MAX_WAITING, Outbox
from weft.switch.p4runtime.service import Server

ENTRY = f"table_entry {{ table_id: {ACL} priority: 1 action {{ action {{ action_id: {DENY} }} }} }}"

oracle_only = pytest.mark.parametrize("switches", ["oracle"], indirect=True)


@pytest.fixture
def fresh(server: Server) -> Iterator[P4RuntimeClient]:
    """A primary controller of device 1, which has no pipeline."""
    made = P4RuntimeClient(server.address)
    made.arbitrate()
    yield made
    made.close()


def get(client: P4RuntimeClient, kind: str = "ALL") -> p4r.GetForwardingPipelineConfigResponse:
    request = p4r.GetForwardingPipelineConfigRequest(device_id=client.device_id, response_type=kind)
    return client.stub.GetForwardingPipelineConfig(request)


def test_nothing_works_before_a_pipeline_is_set(fresh: P4RuntimeClient) -> None:
    assert not get(fresh).HasField("config")
    assert code_of(lambda: fresh.write("INSERT", ENTRY)) == grpc.StatusCode.FAILED_PRECONDITION
    assert code_of(fresh.read) == grpc.StatusCode.FAILED_PRECONDITION
    assert code_of(lambda: fresh.set_pipeline("COMMIT")) == grpc.StatusCode.NOT_FOUND
    fresh.close()


def test_a_config_is_returned_as_it_was_set(client: P4RuntimeClient) -> None:
    assert get(client).config == router_config()
    assert get(client, "COOKIE_ONLY").config == p4r.ForwardingPipelineConfig(cookie={"cookie": 7})
    assert get(client, "P4INFO_AND_COOKIE").config.p4_device_config == b""
    assert not get(client, "DEVICE_CONFIG_AND_COOKIE").config.HasField("p4info")


def test_verify_changes_nothing_and_commit_clears(client: P4RuntimeClient) -> None:
    client.write("INSERT", ENTRY)
    client.set_pipeline("VERIFY", config=router_config(8))
    assert get(client).config.cookie.cookie == 7
    assert len(client.read(p4r.Entity(table_entry={}))) == 1
    client.set_pipeline(config=router_config(9))
    assert get(client).config.cookie.cookie == 9
    assert client.read(p4r.Entity(table_entry={})) == []


@oracle_only
def test_a_saved_config_takes_writes_until_it_is_committed(
    client: P4RuntimeClient, switches: dict[int, OracleSwitch]
) -> None:
    client.set_pipeline("VERIFY_AND_SAVE", config=router_config(8))
    assert get(client).config.cookie.cookie == 8
    client.write("INSERT", ENTRY)
    assert client.write_error("INSERT", ENTRY).canonical_code == rpc_code.ALREADY_EXISTS
    assert len(switches[1].objects.tables["acl"].entries) == 0
    client.set_pipeline("COMMIT")
    assert len(switches[1].objects.tables["acl"].entries) == 1
    assert len(client.read(p4r.Entity(table_entry={}))) == 1
    assert code_of(lambda: client.set_pipeline("COMMIT")) == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("COMMIT", "INVALID_ARGUMENT"),
        ("UNSPECIFIED", "INVALID_ARGUMENT"),
    ],
)
def test_other_actions_are_refused(client: P4RuntimeClient, action: str, code: str) -> None:
    assert code_of(lambda: client.set_pipeline(action, config=router_config())).name == code


def without(section: str, name: str) -> bytes:
    document = router_json()
    document[section] = [each for each in document[section] if each["name"] != name]
    return json.dumps(document).encode()


def wider() -> p4r.ForwardingPipelineConfig:
    config = router_config()
    config.p4info.tables[0].match_fields[0].bitwidth = 24
    return config


def changed(**fields: Any) -> p4r.ForwardingPipelineConfig:
    config = router_config()
    for name, value in fields.items():
        setattr(config, name, value)
    return config


def duplicate_id() -> p4r.ForwardingPipelineConfig:
    config = router_config()
    config.p4info.actions[0].preamble.id = ACL
    return config


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (changed(p4_device_config=b""), "p4_device_config is empty"),
        (changed(p4_device_config=b"{}"), r"p4_device_config: \$: attribute 'header_types' is missing"),
        (
            changed(p4_device_config=without("learn_lists", "digest_t")),
            "unknown list id",
        ),
        (wider(), "p4info: table 'routes': match field 'ipv4.dst' has 24 bits, in p4_device_config 32"),
        (duplicate_id(), "have the same id"),
    ],
)
def test_a_bad_config_is_refused_and_leaves_the_old_one(
    client: P4RuntimeClient, config: p4r.ForwardingPipelineConfig, message: str
) -> None:
    with pytest.raises(grpc.RpcError, match=message) as caught:
        client.set_pipeline(config=config)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert get(client).config == router_config()


def test_packet_out_and_packet_in(client: P4RuntimeClient) -> None:
    payload = bytes(Ether() / b"hello")
    # the second metadata is padding, which may be left out
    client.send(packet={"payload": payload, "metadata": [{"metadata_id": 1, "value": b"\x01\xfe"}]})
    packet = client.receive("packet").packet
    assert packet.payload == payload
    assert {each.metadata_id: each.value for each in packet.metadata} == {1: b"\x01\xfe", 2: b"\x00"}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([], "metadata 'egress_port' is missing"),
        ([{"metadata_id": 9, "value": b"\x01"}], "unknown metadata id 9 (valid: '1 (egress_port)'"),
        (
            [{"metadata_id": 1, "value": b"\x02\x00"}],
            "metadata 'egress_port': value 0x200 does not fit 9 bits",
        ),
        ([{"metadata_id": 1, "value": b"\x01"}] * 2, "metadata 'egress_port' is given twice"),
    ],
)
def test_a_bad_packet_out_is_reported_on_the_stream(
    client: P4RuntimeClient, metadata: list[dict[str, Any]], message: str
) -> None:
    client.send(packet={"payload": b"x", "metadata": metadata})
    error = client.receive("error").error
    assert message in error.message
    assert error.packet_out.packet_out.payload == b"x"


def test_packet_outs_are_for_the_program_that_runs_not_for_the_saved_one(client: P4RuntimeClient) -> None:
    config = router_config()
    del config.p4info.controller_packet_metadata[:]
    client.set_pipeline("VERIFY_AND_SAVE", config=config)
    client.send(packet={"payload": b"hello", "metadata": [{"metadata_id": 1, "value": b"\x01\xfe"}]})
    assert client.receive("packet").packet.payload == b"hello"


def test_a_backup_may_not_send_packets(client: P4RuntimeClient, server: Server) -> None:
    backup = P4RuntimeClient(server.address, election_id=0)
    backup.arbitrate()
    backup.send(packet={"payload": b"x"})
    assert backup.receive("error").error.canonical_code == rpc_code.PERMISSION_DENIED
    backup.close()


def test_arbitration_comes_first_on_a_stream(server: Server) -> None:
    early = P4RuntimeClient(server.address)
    early.send(packet={"payload": b"x"})
    assert "must come first" in early.receive("error").error.message
    assert early.arbitrate().status.code == rpc_code.OK
    early.close()


@oracle_only
def test_a_packet_in_shorter_than_its_header_is_dropped(
    client: P4RuntimeClient, switches: dict[int, OracleSwitch]
) -> None:
    switches[1]._events.put(PacketIn(b"x"))
    switches[1]._events.put(PacketIn(b"\x00\x80whole"))
    assert client.receive("packet").packet.payload == b"whole"


def test_capabilities(client: P4RuntimeClient) -> None:
    assert client.stub.Capabilities(p4r.CapabilitiesRequest()).p4runtime_api_version == "1.5.0"
    assert client.stub.Capabilities(p4r.CapabilitiesRequest(device_id=2)).p4runtime_api_version
    unknown = p4r.CapabilitiesRequest(device_id=9)
    assert code_of(lambda: client.stub.Capabilities(unknown)) == grpc.StatusCode.NOT_FOUND


def test_unknown_devices_roles_and_atomicity(client: P4RuntimeClient) -> None:
    assert code_of(lambda: client.stub.Write(p4r.WriteRequest(device_id=9))) == grpc.StatusCode.NOT_FOUND
    assert code_of(lambda: client.stub.Write(p4r.WriteRequest(device_id=1, role="x"))) == grpc.StatusCode.NOT_FOUND
    assert code_of(lambda: client.write_updates(atomicity=9)) == grpc.StatusCode.INVALID_ARGUMENT
    bad_type = p4r.Update(entity=update("INSERT", ENTRY).entity)
    with pytest.raises(grpc.RpcError, match="valid: INSERT, MODIFY, DELETE"):
        client.write_updates(bad_type)


def test_a_full_outbox_drops_packets_but_never_arbitration() -> None:
    outbox = Outbox()
    for _ in range(MAX_WAITING + 5):
        outbox.put(p4r.StreamMessageResponse(packet={}))
    outbox.put(p4r.StreamMessageResponse(arbitration={}))
    outbox.close()
    messages = list(outbox)
    assert outbox.dropped == 5
    assert len(messages) == MAX_WAITING + 1
    assert messages[-1].HasField("arbitration")


def wrapped(document: bytes, *, reassign: bool = True, extras: bytes = b"") -> bytes:
    """A P4DeviceConfig as controllers in the style of p4lang's tutorials make it, in proto3's wire format."""
    message = b"\x08\x01" if reassign else b""
    if extras:
        message += b"\x12" + varint(len(extras)) + extras
    return message + b"\x1a" + varint(len(document)) + document


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize(
    "config",
    [
        wrapped(router_config().p4_device_config),
        wrapped(router_config().p4_device_config, reassign=False),
        # {"version": "1"}
        wrapped(router_config().p4_device_config, extras=b"\x0a\x0c\x0a\x07version\x12\x011"),
    ],
    ids=["reassign", "bare", "extras"],
)
def test_a_json_in_pis_wrapping_is_taken_and_returned_as_it_was(fresh: P4RuntimeClient, config: bytes) -> None:
    given = router_config()
    given.p4_device_config = config
    fresh.set_pipeline(config=given)
    assert get(fresh).config.p4_device_config == config
    fresh.write("INSERT", ENTRY)
    fresh.close()


@oracle_only
def test_a_wrapping_without_a_document_is_refused(fresh: P4RuntimeClient) -> None:
    given = router_config()
    for config, message in [
        (b"\x08\x01", "P4DeviceConfig without device_data"),
        (wrapped(b"{"), "p4_device_config"),
        (b"\x1a\x7f", "p4_device_config"),
        (b"no json", "p4_device_config"),
    ]:
        given.p4_device_config = config
        with pytest.raises(grpc.RpcError) as refused:
            fresh.set_pipeline(config=given)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert message in refused.value.details()
    fresh.close()
