"""role.config: what the controllers of a role may write, read and receive (P4Runtime §5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, rpc_code
from google.protobuf import any_pb2
from p4runtime_client import P4RuntimeClient, code_of
from router_program import (
    ACL,
    COUNTER,
    DENY,
    DIGEST,
    LEARN,
    POLICE,
    REGISTER,
    entity,
    router_config,
    update,
)
from scapy.layers.l2 import Ether
from test_p4runtime_atomicity import STATE

from weft.switch.oracle import OracleSwitch
from weft.switch.p4runtime.roles import P4RoleConfig
from weft.switch.p4runtime.service import Server

ACL_ENTRY = f"table_entry {{ table_id: {ACL} priority: 4 action {{ action {{ action_id: {DENY} }} }} }}"
LEARNING = (
    f"table_entry {{ table_id: {POLICE} match {{ field_id: 1 exact {{ value: '\\001' }} }}"
    f" action {{ action {{ action_id: {LEARN} }} }} }}"
)
PACKET = bytes(Ether(type=0x1234))


def packed(**fields: Any) -> any_pb2.Any:
    config = any_pb2.Any()
    config.Pack(P4RoleConfig(**fields))
    return config


def controller(server: Server, role: str, election_id: int = 1, **config: Any) -> P4RuntimeClient:
    made = P4RuntimeClient(server.address, election_id=election_id, role=role)
    made.arbitrate(role=p4r.Role(name=role, config=packed(**config)))
    return made


@pytest.fixture
def security(client: P4RuntimeClient, server: Server) -> Iterator[P4RuntimeClient]:
    """Owns the access list and shares a register; the default role's client has set the pipeline."""
    made = controller(server, "security", exclusive_p4_ids=[ACL], shared_p4_ids=[REGISTER])
    yield made
    made.close()


def test_a_role_writes_its_own_entities_only(security: P4RuntimeClient) -> None:
    security.write("INSERT", ACL_ENTRY)
    security.write("MODIFY", f"direct_meter_entry {{ table_entry {{ table_id: {ACL} priority: 4 }} }}")
    security.write("MODIFY", f"register_entry {{ register_id: {REGISTER} data {{ bitstring: '\\001' }} }}")
    for kind, text in (("INSERT", STATE[0]), ("MODIFY", f"counter_entry {{ counter_id: {COUNTER} }}")):
        error = security.write_error(kind, text)
        assert error.canonical_code == rpc_code.PERMISSION_DENIED
        assert error.message.startswith("the role may not write the entity with id 0x")
    with pytest.raises(grpc.RpcError):
        security.write_updates(update("DELETE", ACL_ENTRY), update("INSERT", STATE[0]), atomicity="ROLLBACK_ON_ERROR")
    assert len(security.read(entity("table_entry {}"))) == 1


def test_reads_by_a_role_show_what_it_owns(security: P4RuntimeClient, client: P4RuntimeClient) -> None:
    client.write_updates(*(update("INSERT", text) for text in (STATE[0], ACL_ENTRY)))

    def tables(role: str) -> set[int]:
        request = p4r.ReadRequest(device_id=1, role=role, entities=[entity("table_entry {}")])
        return {found.table_entry.table_id for each in client.stub.Read(request) for found in each.entities}

    assert tables("security") == {ACL}
    assert len(tables("")) == 2
    assert code_of(lambda: tables("unknown")) == grpc.StatusCode.NOT_FOUND


def test_a_role_sets_the_pipeline_only_if_it_may(security: P4RuntimeClient, server: Server) -> None:
    denied = code_of(lambda: security.set_pipeline(config=router_config()))
    assert denied == grpc.StatusCode.PERMISSION_DENIED
    controller(server, "deployment", can_push_pipeline=True).set_pipeline(config=router_config(9))


def test_packets_digests_and_packet_outs_follow_the_role(
    client: P4RuntimeClient, server: Server, switches: dict[int, OracleSwitch]
) -> None:
    learner = controller(server, "learner", exclusive_p4_ids=[DIGEST])
    watcher = controller(
        server, "watcher", receives_packet_ins=True, packet_in_filter={"metadata_id": 1, "value": b"\x00\x07"}
    )
    client.write_updates(
        update("INSERT", LEARNING),
        update("INSERT", LEARNING.replace("\\001", "\\007")),
        update("INSERT", f"digest_entry {{ digest_id: {DIGEST} config {{ max_list_size: 1 }} }}"),
    )
    out = p4r.PacketOut(payload=PACKET)
    for number, port in ((1, b"\x01\xfe"), (2, b"\x00")):
        out.metadata.add(metadata_id=number, value=port)
    learner.send(packet=out)
    assert learner.receive("error").error.canonical_code == rpc_code.PERMISSION_DENIED
    switches[1].process(1, PACKET)
    assert learner.receive("digest").digest.digest_id == DIGEST
    watcher.send(packet=out)  # comes back by the CPU port, as a packet-in from port 510, which is filtered out
    assert client.receive("digest").digest.digest_id == DIGEST
    assert client.receive("packet").packet.payload == PACKET
    watcher.send(packet=p4r.PacketOut())
    assert watcher.receive("error").error.canonical_code == rpc_code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("role", "config", "message"),
    [
        ("", packed(), "the default role has full access"),
        ("x", any_pb2.Any(type_url="type.googleapis.com/google.rpc.Status"), "valid: 'stratum.P4RoleConfig'"),
        ("x", any_pb2.Any(type_url="/stratum.P4RoleConfig", value=b"\xff"), "is no stratum.P4RoleConfig"),
        ("x", packed(shared_p4_ids=[ACL]), f"id {ACL:#010x} belongs to role 'security' already"),
        ("x", packed(exclusive_p4_ids=[REGISTER]), f"id {REGISTER:#010x} belongs to role 'security' already"),
    ],
)
def test_bad_configs_end_the_stream(
    security: P4RuntimeClient, server: Server, role: str, config: any_pb2.Any, message: str
) -> None:
    bad = P4RuntimeClient(server.address, election_id=7, role=role)
    with pytest.raises(grpc.RpcError) as caught:
        bad.arbitrate(role=p4r.Role(name=role, config=config))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert message in caught.value.details()


def test_backups_receive_the_primarys_config(security: P4RuntimeClient, server: Server) -> None:
    backup = P4RuntimeClient(server.address, election_id=0, role="security")
    answer = backup.arbitrate(role=p4r.Role(name="security", config=packed(can_push_pipeline=True)))
    assert answer.role.config == packed(exclusive_p4_ids=[ACL], shared_p4_ids=[REGISTER])
    security.arbitrate(role=p4r.Role(name="security"))  # full access from now on
    assert not backup.receive("arbitration").arbitration.role.HasField("config")
    security.write("INSERT", STATE[0])
