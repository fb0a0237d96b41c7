"""Entries that the program gives its tables: constant ones and ones that controllers may change (§9.1.4, §9.1.5)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from finsy.proto import p4i, p4r, rpc_code
from p4runtime_client import P4RuntimeClient
from router_program import (
    ACL,
    DENY,
    NO_ACTION,
    PERMIT,
    POLICE,
    entity,
    router_config,
    router_json,
)

from weft.switch.p4runtime.service import Server

FIRST = (
    f'table_entry {{ table_id: {ACL} match {{ field_id: 1 ternary {{ value: "\\n" mask: "\\377" }} }}'
    f' match {{ field_id: 2 range {{ low: "\\001" high: "\\t" }} }} priority: 2 '
)
SECOND = f"table_entry {{ table_id: {ACL} priority: 1 "


def _entry(source: tuple[int, int], ttl: tuple[int, int], action_id: int, priority: int) -> dict[str, object]:
    return {
        "match_key": [
            {"match_type": "ternary", "key": hex(source[0]), "mask": hex(source[1])},
            {"match_type": "range", "start": hex(ttl[0]), "end": hex(ttl[1])},
            {"match_type": "ternary", "key": "0x0", "mask": "0x0"},
        ],
        "action_entry": {"action_id": action_id, "action_data": []},
        "priority": priority,
    }


def config(*, constant: bool, initial: bool = True) -> p4r.ForwardingPipelineConfig:
    """The router with two entries in its access list."""
    document = router_json()
    (acl,) = (each for each in document["pipelines"][0]["tables"] if each["name"] == "acl")
    acl["entries"] = [_entry((10, 0xFF), (1, 9), 3, 1), _entry((0, 0), (0, 255), 2, 2)]
    made = router_config()
    made.p4_device_config = json.dumps(document).encode()
    (info,) = (each for each in made.p4info.tables if each.preamble.id == ACL)
    info.is_const_table, info.has_initial_entries = constant, initial
    return made


@pytest.fixture
def controller(server: Server) -> Iterator[P4RuntimeClient]:
    made = P4RuntimeClient(server.address)
    made.arbitrate()
    yield made
    made.close()


def action(number: int) -> str:
    return f"action {{ action {{ action_id: {number} }} }}"


def contents(client: P4RuntimeClient) -> dict[int, p4r.TableEntry]:
    return {
        found.table_entry.priority: found.table_entry
        for found in client.read(entity(f"table_entry {{ table_id: {ACL} meter_config {{}} }}"))
    }


def test_constant_entries_are_read_in_full(controller: P4RuntimeClient) -> None:
    controller.set_pipeline(config=config(constant=True))
    found = contents(controller)
    assert found[2] == entity(FIRST + action(DENY) + " is_const: true }").table_entry
    assert found[1] == entity(SECOND + action(PERMIT) + " is_const: true }").table_entry


@pytest.mark.parametrize("initial", [True, False], ids=["1.4", "P4Info before 1.4"])
def test_of_constant_entries_only_direct_resources_change(controller: P4RuntimeClient, initial: bool) -> None:
    controller.set_pipeline(config=config(constant=initial, initial=initial))
    for kind, text in (
        ("INSERT", f"table_entry {{ table_id: {ACL} priority: 9 {action(DENY)} }}"),
        ("DELETE", SECOND + "}"),
        ("MODIFY", SECOND + action(PERMIT) + "}"),
    ):
        assert controller.write_error(kind, text).canonical_code == rpc_code.PERMISSION_DENIED
    meter = "meter_config { cir: 1 cburst: 2 pir: 3 pburst: 4 }"
    controller.write("MODIFY", SECOND + meter + "}")
    assert contents(controller)[1] == entity(SECOND + action(PERMIT) + meter + " is_const: true }").table_entry


def test_preinitialized_entries_are_like_any_other(controller: P4RuntimeClient) -> None:
    controller.set_pipeline(config=config(constant=False))
    assert contents(controller)[1] == entity(SECOND + action(PERMIT) + "}").table_entry
    controller.write("MODIFY", SECOND + action(DENY) + 'metadata: "mine" }')
    controller.write("DELETE", FIRST + "}")
    controller.write("INSERT", f"table_entry {{ table_id: {ACL} priority: 9 {action(DENY)} }}")
    found = contents(controller)
    assert set(found) == {1, 9}
    assert found[1] == entity(SECOND + action(DENY) + 'metadata: "mine" }').table_entry


def test_a_new_pipeline_brings_the_initial_entries_back(controller: P4RuntimeClient) -> None:
    controller.set_pipeline(config=config(constant=False))
    controller.write("DELETE", FIRST + "}")
    controller.set_pipeline(config=config(constant=False))
    assert set(contents(controller)) == {1, 2}


def test_the_default_entry_says_if_it_is_constant(controller: P4RuntimeClient) -> None:
    fixed = config(constant=True)
    (info,) = (each for each in fixed.p4info.tables if each.preamble.id == POLICE)
    info.const_default_action_id = NO_ACTION
    assert isinstance(info, p4i.Table)
    controller.set_pipeline(config=fixed)
    for table, constant in ((POLICE, True), (ACL, False)):
        (found,) = controller.read(entity(f"table_entry {{ table_id: {table} is_default_action: true }}"))
        assert found.table_entry.is_const is constant
