"""Batches that are applied as a whole or not at all (P4Runtime §12.2), on both switches."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r, rpc_code
from p4runtime_client import P4RuntimeClient, batch_errors, code_of
from router_program import (
    ACL,
    COUNTER,
    DENY,
    DIGEST,
    ECMP,
    METER,
    PERMIT,
    PROFILE,
    REGISTER,
    ROUTE,
    ROUTES,
    SET_PORT,
    VALUE_SET,
    entity,
    router_config,
    update,
)

ROUTE_KEY = f'table_id: {ROUTES} match {{ field_id: 1 lpm {{ value: "\\n\\000\\000\\000" prefix_len: 8 }} }}'
ROUTE_ACTION = (
    f'action {{ action {{ action_id: {ROUTE} params {{ param_id: 1 value: "\\003" }}'
    ' params { param_id: 2 value: "\\002" } } }'
)


def call(number: int, port: int) -> str:
    return f'action {{ action_id: {number} params {{ param_id: 1 value: "\\{port:03o}" }} }}'


def one_shot(*ports: int) -> str:
    actions = (f"action_profile_actions {{ {call(SET_PORT, port)} weight: 1 }}" for port in ports)
    return f"action {{ action_profile_action_set {{ {' '.join(actions)} }} }}"


ECMP_KEY = f'table_id: {ECMP} match {{ field_id: 1 exact {{ value: "\\t" }} }}'
STATE = [
    f"table_entry {{ {ROUTE_KEY} {ROUTE_ACTION} metadata: 'm' counter_data {{ packet_count: 7 byte_count: 9 }} }}",
    f"table_entry {{ table_id: {ACL} priority: 4 action {{ action {{ action_id: {DENY} }} }}"
    " meter_config { cir: 1 cburst: 2 pir: 3 pburst: 4 } }",
    f"table_entry {{ {ECMP_KEY} {one_shot(1, 2)} }}",
    "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 5"
    ' metadata: "g" replicas { port: "\\001" instance: 2 } } }',
    "packet_replication_engine_entry { clone_session_entry { session_id: 6 class_of_service: 1"
    ' replicas { port: "\\001" } } }',
    f"digest_entry {{ digest_id: {DIGEST} config {{ max_list_size: 3 }} }}",
]
MEMBER = f"action_profile_member {{ action_profile_id: {PROFILE} member_id: 1 {call(SET_PORT, 3)} }}"
CELLS = [
    f"counter_entry {{ counter_id: {COUNTER} index {{ index: 3 }} data {{ packet_count: 1 byte_count: 2 }} }}",
    f"meter_entry {{ meter_id: {METER} index {{ index: 3 }} config {{ cir: 1 cburst: 2 pir: 3 pburst: 4 }} }}",
    f"register_entry {{ register_id: {REGISTER} index {{ index: 3 }} data {{ bitstring: '\\005' }} }}",
    f"value_set_entry {{ value_set_id: {VALUE_SET} members {{ match {{ field_id: 1 exact {{ value: '\\010' }} }} }} }}",
]
EVERYTHING = [
    "table_entry { counter_data {} meter_config {} }",
    f"table_entry {{ table_id: {ROUTES} is_default_action: true counter_data {{}} }}",
    "action_profile_member {}",
    "action_profile_group {}",
    "packet_replication_engine_entry { multicast_group_entry {} }",
    "packet_replication_engine_entry { clone_session_entry {} }",
    "digest_entry {}",
    "counter_entry {}",
    "meter_entry {}",
    "register_entry {}",
    "value_set_entry {}",
]
FAILING = update("DELETE", f"table_entry {{ table_id: {ACL} priority: 99 }}")


def snapshot(client: P4RuntimeClient) -> list[bytes]:
    return sorted(
        found.SerializeToString(deterministic=True) for found in client.read(*(entity(text) for text in EVERYTHING))
    )


@pytest.fixture
def filled(client: P4RuntimeClient) -> P4RuntimeClient:
    client.write_updates(*(update("INSERT", text) for text in STATE), *(update("MODIFY", text) for text in CELLS))
    return client


CHANGES = [
    *(update("DELETE", text) for text in STATE),
    update("MODIFY", STATE[0].replace("\\003", "\\004")),
    update("MODIFY", STATE[1].replace("cir: 1", "cir: 2")),
    update("MODIFY", STATE[3].replace("instance: 2", "instance: 3")),
    update("MODIFY", STATE[4].replace("class_of_service: 1", "")),
    update("MODIFY", STATE[5].replace("max_list_size: 3", "")),
    update("MODIFY", f"table_entry {{ {ECMP_KEY} {one_shot(3)} }}"),
    update("MODIFY", f"table_entry {{ table_id: {ROUTES} is_default_action: true"
           f" action {{ action {{ action_id: {DENY} }} }} counter_data {{ packet_count: 5 }} }}"),
    update("INSERT", f"table_entry {{ table_id: {ACL} priority: 9 action {{ action {{ action_id: {PERMIT} }} }} }}"),
    update("MODIFY", f"counter_entry {{ counter_id: {COUNTER} data {{ packet_count: 8 }} }}"),
    update("MODIFY", f"meter_entry {{ meter_id: {METER} }}"),
    update("MODIFY", f"register_entry {{ register_id: {REGISTER} data {{ bitstring: '\\007' }} }}"),
    update("MODIFY", f"value_set_entry {{ value_set_id: {VALUE_SET} }}"),
    update("MODIFY", f"direct_counter_entry {{ table_entry {{ {ROUTE_KEY} }} data {{ packet_count: 1 }} }}"),
    update("MODIFY", f"direct_meter_entry {{ table_entry {{ table_id: {ACL} priority: 4 }} }}"),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.entity.WhichOneof("entity")))
def test_what_a_failed_batch_changed_is_restored(filled: P4RuntimeClient, change: p4r.Update) -> None:
    before = snapshot(filled)
    with pytest.raises(grpc.RpcError):
        filled.write_updates(change, FAILING, change, atomicity="ROLLBACK_ON_ERROR")
    assert snapshot(filled) == before
    filled.write_updates(change, atomicity="ROLLBACK_ON_ERROR")
    assert snapshot(filled) != before


@pytest.mark.parametrize("atomicity", ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"])
def test_every_update_of_a_failed_batch_is_accounted_for(filled: P4RuntimeClient, atomicity: str) -> None:
    before = snapshot(filled)
    insert = f"table_entry {{ table_id: {ACL} priority: 9 action {{ action {{ action_id: {PERMIT} }} }} }}"
    with pytest.raises(grpc.RpcError) as caught:
        filled.write_updates(
            update("INSERT", insert), update("DELETE", STATE[0]), FAILING, update("DELETE", insert),
            atomicity=atomicity,
        )  # fmt: skip
    errors = batch_errors(caught.value)
    assert [each.canonical_code for each in errors] == [
        rpc_code.ABORTED, rpc_code.ABORTED, rpc_code.NOT_FOUND, rpc_code.ABORTED,
    ]  # fmt: skip
    assert [each.message for each in errors if each.canonical_code == rpc_code.ABORTED] == [
        "taken back, because update 2 of the batch failed",
        "taken back, because update 2 of the batch failed",
        "not tried, because update 2 of the batch failed",
    ]
    assert snapshot(filled) == before


@pytest.mark.parametrize("atomicity", ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"])
def test_dependent_updates_succeed_as_a_whole(client: P4RuntimeClient, atomicity: str) -> None:
    client.write_updates(
        update("INSERT", MEMBER),
        update("INSERT", f"action_profile_group {{ action_profile_id: {PROFILE} group_id: 1 max_size: 2"
               " members { member_id: 1 weight: 1 } }"),
        update("INSERT", f"table_entry {{ {ECMP_KEY} action {{ action_profile_group_id: 1 }} }}"),
        atomicity=atomicity,
    )  # fmt: skip
    (found,) = client.read(entity("table_entry {}"))
    assert found.table_entry.action.action_profile_group_id == 1


def test_a_failed_chain_is_taken_back_in_reverse(client: P4RuntimeClient) -> None:
    before = snapshot(client)
    with pytest.raises(grpc.RpcError):
        client.write_updates(
            update("INSERT", MEMBER),
            update("INSERT", f"table_entry {{ {ECMP_KEY} action {{ action_profile_member_id: 1 }} }}"),
            FAILING,
            atomicity="ROLLBACK_ON_ERROR",
        )  # fmt: skip
    assert snapshot(client) == before


def test_a_batch_across_ingress_and_egress_is_not_called_atomic(client: P4RuntimeClient) -> None:
    # clones are made behind both pipelines, the routes belong to ingress
    updates = [update("INSERT", STATE[0]), update("INSERT", STATE[4])]
    assert (
        code_of(lambda: client.write_updates(*updates, atomicity="DATAPLANE_ATOMIC")) == grpc.StatusCode.UNIMPLEMENTED
    )
    assert client.read(entity("table_entry {}")) == []
    client.write_updates(*updates[1:], atomicity="DATAPLANE_ATOMIC")
    client.write_updates(*updates[:1], update("INSERT", STATE[3]), atomicity="DATAPLANE_ATOMIC")


def test_a_saved_config_keeps_only_what_was_not_taken_back(filled: P4RuntimeClient) -> None:

    filled.set_pipeline("VERIFY_AND_SAVE", config=router_config(8))
    with pytest.raises(grpc.RpcError):
        filled.write_updates(update("INSERT", STATE[0]), FAILING, atomicity="ROLLBACK_ON_ERROR")
    filled.write_updates(update("INSERT", STATE[1]), atomicity="ROLLBACK_ON_ERROR")
    filled.set_pipeline("COMMIT")
    (found,) = filled.read(entity("table_entry {}"))
    assert found.table_entry.table_id == ACL
