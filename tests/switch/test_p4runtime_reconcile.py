"""RECONCILE_AND_COMMIT: another pipeline with the same forwarding state (P4Runtime §14)."""

from __future__ import annotations

import json
from collections.abc import Callable

import grpc
import pytest
from finsy.proto import p4r
from p4runtime_client import P4RuntimeClient, code_of
from router_program import ACL, REGISTER, ROUTES, entity, router_config, router_json, update
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from test_p4runtime_atomicity import CELLS, STATE, snapshot

from weft.switch.oracle import OracleSwitch


def changed(change: Callable[[p4r.ForwardingPipelineConfig], None]) -> p4r.ForwardingPipelineConfig:
    config = router_config(8)
    change(config)
    return config


def fill(client: P4RuntimeClient) -> None:
    client.write_updates(*(update("INSERT", text) for text in STATE), *(update("MODIFY", text) for text in CELLS))


def other_program() -> p4r.ForwardingPipelineConfig:
    """The router with smaller packets in its digests: another document, the same tables."""
    document = router_json()
    document["field_lists"][0]["name"] = "renamed"
    return changed(lambda config: setattr(config, "p4_device_config", json.dumps(document).encode()))


def test_the_state_lives_on_in_the_new_pipeline(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    fill(client)
    before = snapshot(client)
    client.set_pipeline("RECONCILE_AND_COMMIT", config=other_program())
    assert snapshot(client) == before
    answer = client.stub.GetForwardingPipelineConfig(p4r.GetForwardingPipelineConfigRequest(device_id=1))
    assert answer.config == other_program()
    packet = bytes(Ether() / IP(src="10.1.0.1", dst="10.2.0.2", ttl=9) / UDP())
    assert switches[1].process(1, packet) == []  # the access list drops all
    query = entity(f"table_entry {{ table_id: {ROUTES} counter_data {{}} }}")
    (route,) = client.read(query)
    assert route.table_entry.counter_data.packet_count == 7 + 1


def test_what_has_no_place_in_the_new_pipeline_is_refused_and_all_stays(client: P4RuntimeClient) -> None:
    fill(client)
    before = snapshot(client)

    def without_route(config: p4r.ForwardingPipelineConfig) -> None:
        (table,) = (each for each in config.p4info.tables if each.preamble.id == ROUTES)
        del table.action_refs[0]

    def smaller_register(config: p4r.ForwardingPipelineConfig) -> None:
        (register,) = (each for each in config.p4info.registers if each.preamble.id == REGISTER)
        register.size = 2
        document = json.loads(config.p4_device_config)
        document["register_arrays"][0]["size"] = 2
        config.p4_device_config = json.dumps(document).encode()

    for change in (without_route, smaller_register):
        with pytest.raises(grpc.RpcError, match="the state cannot be preserved: ") as caught:
            client.set_pipeline("RECONCILE_AND_COMMIT", config=changed(change))
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert snapshot(client) == before


def test_an_id_must_not_mean_another_object(client: P4RuntimeClient) -> None:
    def swapped(config: p4r.ForwardingPipelineConfig) -> None:
        routes, acl = (each for each in config.p4info.tables if each.preamble.id in (ROUTES, ACL))
        routes.preamble.id, acl.preamble.id = ACL, ROUTES
        config.p4info.direct_counters[0].direct_table_id = ACL
        config.p4info.direct_meters[0].direct_table_id = ROUTES

    with pytest.raises(grpc.RpcError, match="is 'routes' now and 'acl' in the new config"):
        client.set_pipeline("RECONCILE_AND_COMMIT", config=changed(swapped))


def test_without_a_pipeline_there_is_nothing_to_preserve(client: P4RuntimeClient) -> None:
    fresh = P4RuntimeClient(client.address, device_id=2)
    fresh.arbitrate()
    fresh.set_pipeline("RECONCILE_AND_COMMIT", config=router_config(3))
    assert fresh.read(entity("table_entry {}")) == []
    assert code_of(lambda: fresh.set_pipeline("RECONCILE_AND_COMMIT")) == grpc.StatusCode.INVALID_ARGUMENT


def test_committing_another_pipeline_clears_groups_and_sessions(
    client: P4RuntimeClient, switches: dict[int, OracleSwitch]
) -> None:
    multicast = (
        "table_entry { table_id: 0x02000004 match { field_id: 1 exact { value: '\\001' } }"
        " action { action { action_id: 0x01000008 params { param_id: 1 value: '\\005' } } } }"
    )
    fill(client)
    client.write("INSERT", multicast)
    packet = bytes(Ether(type=0x1234))
    assert [output.port for output in switches[1].process(1, packet)] == [1]
    client.set_pipeline(config=router_config())
    client.write("INSERT", multicast)
    assert switches[1].process(1, packet) == []
