"""Every call of BMv2's services on a switch, through the port."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

from tests.thrift.client import ApplicationError, Client, Refused
from weft.thrift.bmv2 import (
    SERVICES,
    CounterError,
    IdError,
    LearnError,
    MatchType,
    MeterError,
    MirroringError,
    MulticastError,
    PortError,
    RegisterError,
    ResourceType,
    SwapError,
    TableError,
    ValueSetError,
)
from weft.thrift.calls import CALLS
from weft.thrift.declaration import Method

MAC = bytes.fromhex("080000000111")
FORWARD = {"action_name": "MyIngress.forward", "action_data": [MAC, b"\0\2"]}
ROUTES, SOURCES, ACL, BALANCED, WAYS = (
    f"MyIngress.{name}" for name in ("ipv4_lpm", "sources", "acl", "balanced", "ways")
)


def exact(key: bytes) -> dict[str, Any]:
    return {"type": MatchType.EXACT, "exact": {"key": key}}


def prefix(key: bytes, length: int) -> dict[str, Any]:
    return {"type": MatchType.LPM, "lpm": {"key": key, "prefix_length": length}}


def ternary(key: bytes, mask: bytes) -> dict[str, Any]:
    return {"type": MatchType.TERNARY, "ternary": {"key": key, "mask": mask}}


def within(start: bytes, end: bytes) -> dict[str, Any]:
    return {"type": MatchType.RANGE, "range": {"start": start, "end_": end}}


@pytest.fixture
def client(thrift_port: int) -> Iterator[Client]:
    client = Client(thrift_port)
    yield client
    client.socket.close()


def refused_with(code: IntEnum, client: Client, name: str, **arguments: Any) -> None:
    with pytest.raises(Refused) as caught:
        client.call(name, **arguments)
    assert caught.value.code == code


def add_route(client: Client, last: int, **changed: Any) -> int:
    arguments = {
        "table_name": ROUTES,
        "match_key": [prefix(bytes([10, 0, last, 0]), 24)],
        **FORWARD,
        "options": {},
        **changed,
    }
    handle: int = client.call("standard:bm_mt_add_entry", **arguments)
    return handle


@pytest.mark.parametrize(
    ("name", "method"), [(name, method) for service in SERVICES.values() for name, method in service.items()]
)
def test_every_call_is_carried_out_with_its_arguments(name: str, method: Method) -> None:
    arguments = dict.fromkeys(each for each in method.arguments.fields if each != "cxt_id")
    inspect.signature(CALLS[name]).bind(None, **arguments)


def test_no_function_carries_out_what_no_service_has() -> None:
    assert CALLS.keys() == {name for service in SERVICES.values() for name in service}


def test_entries_are_added_changed_and_removed(client: Client) -> None:
    assert [add_route(client, 1), add_route(client, 2)] == [0, 1]
    assert client.call("standard:bm_mt_get_num_entries", table_name=ROUTES) == 2
    client.call(
        "standard:bm_mt_modify_entry", table_name=ROUTES, entry_handle=1, action_name="MyIngress.drop", action_data=[]
    )
    first, second = client.call("standard:bm_mt_get_entries", table_name=ROUTES)
    assert first["match_key"][0]["lpm"] == {"key": bytes([10, 0, 1, 0]), "prefix_length": 24}
    assert first["options"] == {"priority": -1}, "a table without priorities"
    assert first["action_entry"]["action_data"] == [MAC, b"\0\2"]
    assert (second["entry_handle"], second["action_entry"]["action_name"]) == (1, "MyIngress.drop")
    assert client.call("standard:bm_mt_get_entry", table_name=ROUTES, entry_handle=0) == first
    client.call("standard:bm_mt_delete_entry", table_name=ROUTES, entry_handle=0)
    refused_with(TableError.INVALID_HANDLE, client, "standard:bm_mt_delete_entry", table_name=ROUTES, entry_handle=0)
    client.call("standard:bm_mt_clear_entries", table_name=ROUTES, reset_default_entry=True)
    assert client.call("standard:bm_mt_get_entries", table_name=ROUTES) == []


def test_handles_belong_to_the_switch_and_not_to_a_client(client: Client, thrift_port: int) -> None:
    handle = add_route(client, 1)
    other = Client(thrift_port)
    assert add_route(other, 2) == handle + 1
    other.call("standard:bm_mt_delete_entry", table_name=ROUTES, entry_handle=handle)
    other.socket.close()
    assert client.call("standard:bm_mt_get_num_entries", table_name=ROUTES) == 1


def test_keys_of_all_kinds_are_read_as_written(client: Client) -> None:
    key = [
        ternary(bytes([10, 0, 0, 0]), bytes([255, 0, 0, 0])),
        within(b"\x06", b"\x11"),
        exact(b"\x08\x00"),
        ternary(b"\x40", b"\xff"),
    ]
    any_key = [ternary(bytes(4), bytes(4)), within(b"\x00", b"\xff"), exact(b"\x08\x00"), ternary(b"\0", b"\0")]
    add = {"table_name": ACL, "action_name": "MyIngress.drop", "action_data": []}
    for number, each in enumerate((key, any_key)):
        options = {"priority": number + 5}
        assert client.call("standard:bm_mt_add_entry", **add, match_key=each, options=options) == number
        found = client.call("standard:bm_mt_get_entry_from_key", table_name=ACL, match_key=each, options=options)
        assert found["options"] == options
        assert [{k: v for k, v in each.items() if v is not None} for each in found["match_key"]] == each
    wrong = {"table_name": ACL, "match_key": key, "options": {"priority": 1}}
    refused_with(TableError.BAD_MATCH_KEY, client, "standard:bm_mt_get_entry_from_key", **wrong)
    default = client.call("standard:bm_mt_get_entry_from_key", table_name=ACL, match_key=[], options={})
    assert default["action_entry"]["action_name"] == "NoAction"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"table_name": "none"}, TableError.INVALID_TABLE_NAME),
        ({"table_name": BALANCED}, TableError.WRONG_TABLE_TYPE),
        ({"action_name": "none"}, TableError.INVALID_ACTION_NAME),
        ({"action_data": [MAC]}, TableError.BAD_ACTION_DATA),
        ({"action_data": [MAC, b"\xff\xff"]}, TableError.BAD_ACTION_DATA),
        ({"match_key": []}, TableError.BAD_MATCH_KEY),
        ({"match_key": [exact(bytes(4))]}, TableError.BAD_MATCH_KEY),
        ({"match_key": [prefix(b"\1" + bytes(4), 3)]}, TableError.BAD_MATCH_KEY),
        ({"match_key": [prefix(bytes(5), 33)]}, TableError.BAD_MATCH_KEY),
        ({"match_key": [prefix(bytes(4096), 1)]}, TableError.BAD_MATCH_KEY),
        ({"match_key": [{"type": MatchType.LPM}]}, TableError.BAD_MATCH_KEY),
        ({"match_key": [{"type": 77}]}, TableError.BAD_MATCH_KEY),
        ({"match_key": [{"type": MatchType.VALID, "valid": {"key": True}}]}, TableError.BAD_MATCH_KEY),
        ({}, TableError.DUPLICATE_ENTRY),
    ],
)
def test_an_entry_that_cannot_be_is_refused_with_its_code(
    client: Client, changed: dict[str, Any], code: TableError
) -> None:
    add_route(client, 1)
    with pytest.raises(Refused) as caught:
        add_route(client, 1, **changed)
    assert caught.value.code == code
    assert client.call("standard:bm_mt_get_num_entries", table_name=ROUTES) == 1


def test_a_full_table_is_full(client: Client) -> None:
    add = {"table_name": SOURCES, "action_name": "NoAction", "action_data": [], "options": {}}
    for last in range(16):
        client.call("standard:bm_mt_add_entry", **add, match_key=[exact(bytes([10, 0, 0, last]))])
    refused_with(TableError.TABLE_FULL, client, "standard:bm_mt_add_entry", **add, match_key=[exact(bytes(4))])


def test_default_entries(client: Client) -> None:
    client.call("standard:bm_mt_set_default_action", table_name=ROUTES, **FORWARD)
    found = client.call("standard:bm_mt_get_default_entry", table_name=ROUTES)
    assert (found["action_name"], found["action_data"]) == ("MyIngress.forward", [MAC, b"\0\2"])
    client.call("standard:bm_mt_reset_default_entry", table_name=ROUTES)
    assert client.call("standard:bm_mt_get_default_entry", table_name=ROUTES)["action_name"] == "MyIngress.drop"
    assert client.call("standard:bm_mt_get_default_entry", table_name=BALANCED)["action_type"] == 0


def test_idle_timeouts(client: Client) -> None:
    add = {"table_name": SOURCES, "action_name": "NoAction", "action_data": [], "options": {}}
    client.call("standard:bm_mt_add_entry", **add, match_key=[exact(bytes([10, 0, 0, 1]))])
    client.call("standard:bm_mt_set_entry_ttl", table_name=SOURCES, entry_handle=0, timeout_ms=5000)
    assert client.call("standard:bm_mt_get_entry", table_name=SOURCES, entry_handle=0)["life"]["timeout_ms"] == 5000
    add_route(client, 1)
    without = {"table_name": ROUTES, "entry_handle": 0, "timeout_ms": 5000}
    refused_with(TableError.AGEING_DISABLED, client, "standard:bm_mt_set_entry_ttl", **without)


def test_members_and_groups(client: Client) -> None:
    profile = {"act_prof_name": WAYS}
    assert [client.call("standard:bm_mt_act_prof_add_member", **profile, **FORWARD) for _ in range(2)] == [0, 1]
    assert client.call("standard:bm_mt_act_prof_create_group", **profile) == 0
    joining = {**profile, "mbr_handle": 1, "grp_handle": 0}
    client.call("standard:bm_mt_act_prof_add_member_to_group", **joining)
    refused_with(TableError.MBR_ALREADY_IN_GRP, client, "standard:bm_mt_act_prof_add_member_to_group", **joining)
    assert client.call("standard:bm_mt_act_prof_get_groups", **profile) == [{"grp_handle": 0, "mbr_handles": [1]}]
    assert client.call("standard:bm_mt_act_prof_get_group", **profile, grp_handle=0)["mbr_handles"] == [1]
    dropping = {"action_name": "NoAction", "action_data": []}
    client.call("standard:bm_mt_act_prof_modify_member", **profile, mbr_handle=0, **dropping)
    members = client.call("standard:bm_mt_act_prof_get_members", **profile)
    assert [each["action_name"] for each in members] == ["NoAction", "MyIngress.forward"]
    assert client.call("standard:bm_mt_act_prof_get_member", **profile, mbr_handle=0) == members[0]
    assert _entries_that_refer(client) == [(2, 0, None), (3, None, 0)]
    for name, handle, code in (("member", {"mbr_handle": 0}, 11), ("group", {"grp_handle": 0}, 15)):
        refused_with(TableError(code), client, f"standard:bm_mt_act_prof_delete_{name}", **profile, **handle)
    refused_with(
        TableError.INVALID_MBR_HANDLE, client, "standard:bm_mt_act_prof_delete_member", **profile, mbr_handle=9
    )
    client.call("standard:bm_mt_clear_entries", table_name=BALANCED)
    client.call("standard:bm_mt_act_prof_remove_member_from_group", **joining)
    refused_with(TableError.MBR_NOT_IN_GRP, client, "standard:bm_mt_act_prof_remove_member_from_group", **joining)
    client.call("standard:bm_mt_act_prof_delete_group", **profile, grp_handle=0)
    client.call("standard:bm_mt_act_prof_delete_member", **profile, mbr_handle=0)
    name = {"act_prof_name": "none"}
    refused_with(TableError.INVALID_ACTION_PROFILE_NAME, client, "standard:bm_mt_act_prof_get_members", **name)


def _entries_that_refer(client: Client) -> list[tuple[int, int | None, int | None]]:
    """Add two entries, change each, and return both actions: type, member, group."""
    table = {"table_name": BALANCED}
    to_member, to_group = {"mbr_handle": 0}, {"grp_handle": 0}
    first = client.call("standard:bm_mt_indirect_add_entry", **table, match_key=[exact(MAC)], options={}, **to_group)
    assert first == 0
    keyed = {**table, "match_key": [exact(bytes(6))], "options": {}}
    assert client.call("standard:bm_mt_indirect_ws_add_entry", **keyed, **to_group) == 1
    other = {**table, "match_key": [exact(MAC[::-1])], "options": {}}
    refused_with(TableError.INVALID_MBR_HANDLE, client, "standard:bm_mt_indirect_add_entry", **other, mbr_handle=9)
    refused_with(TableError.INVALID_GRP_HANDLE, client, "standard:bm_mt_indirect_ws_add_entry", **other, grp_handle=-1)
    on_routes = {**other, "table_name": ROUTES}
    refused_with(TableError.WRONG_TABLE_TYPE, client, "standard:bm_mt_indirect_add_entry", **on_routes, mbr_handle=0)
    client.call("standard:bm_mt_indirect_modify_entry", **table, entry_handle=0, **to_member)
    client.call("standard:bm_mt_indirect_ws_modify_entry", **table, entry_handle=1, **to_group)
    for what, handle in (("indirect_set_default_member", to_member), ("indirect_ws_set_default_group", to_group)):
        refused_with(TableError.DEFAULT_ENTRY_IS_CONST, client, f"standard:bm_mt_{what}", **table, **handle)
    refused_with(
        TableError.AGEING_DISABLED,
        client,
        "standard:bm_mt_indirect_set_entry_ttl",
        **table,
        entry_handle=0,
        timeout_ms=1,
    )
    actions = [each["action_entry"] for each in client.call("standard:bm_mt_get_entries", **table)]
    client.call("standard:bm_mt_indirect_delete_entry", **table, entry_handle=1)
    assert client.call("standard:bm_mt_indirect_ws_add_entry", **keyed, **to_group) == 1
    return [(each["action_type"], each["mbr_handle"], each["grp_handle"]) for each in actions]


def test_direct_counters_and_meters(client: Client) -> None:
    handle = add_route(client, 1)
    at = {"table_name": ROUTES, "entry_handle": handle}
    client.call("standard:bm_mt_write_counter", **at, value={"bytes": 300, "packets": 3})
    assert client.call("standard:bm_mt_read_counter", **at) == {"bytes": 300, "packets": 3}
    client.call("standard:bm_mt_reset_counters", table_name=ROUTES)
    assert client.call("standard:bm_mt_read_counter", **at) == {"bytes": 0, "packets": 0}
    add = {"table_name": SOURCES, "action_name": "MyIngress.measure", "action_data": [], "options": {}}
    client.call("standard:bm_mt_add_entry", **add, match_key=[exact(bytes(4))])
    metered = {"table_name": SOURCES, "entry_handle": 0}
    assert client.call("standard:bm_mt_get_meter_rates", **metered) == []
    rates = [{"units_per_micros": 1e-05, "burst_size": 10}, {"units_per_micros": 0.5, "burst_size": 20}]
    client.call("standard:bm_mt_set_meter_rates", **metered, rates=rates)
    assert client.call("standard:bm_mt_get_meter_rates", **metered) == rates
    for wrong in (rates[:1], rates[::-1], [{"units_per_micros": float("nan"), "burst_size": 1}] * 2):
        code = TableError.INVALID_METER_OPERATION
        refused_with(code, client, "standard:bm_mt_set_meter_rates", **metered, rates=wrong)
    refused_with(TableError.COUNTERS_DISABLED, client, "standard:bm_mt_read_counter", **metered)
    refused_with(TableError.METERS_DISABLED, client, "standard:bm_mt_get_meter_rates", **at)


def test_counters_meters_and_registers(client: Client) -> None:
    counter = {"counter_name": "MyIngress.by_port"}
    client.call("standard:bm_counter_write", **counter, index=2, value={"bytes": 300, "packets": 3})
    assert client.call("standard:bm_counter_read", **counter, index=2) == {"bytes": 300, "packets": 3}
    client.call("standard:bm_counter_reset_all", **counter)
    assert client.call("standard:bm_counter_read", **counter, index=2) == {"bytes": 0, "packets": 0}
    refused_with(CounterError.INVALID_INDEX, client, "standard:bm_counter_read", **counter, index=4)
    negative = {"index": 1, "value": {"bytes": 0, "packets": -1}}
    refused_with(CounterError.ERROR, client, "standard:bm_counter_write", **counter, **negative)
    name = {"counter_name": "none", "index": 0}
    refused_with(CounterError.INVALID_COUNTER_NAME, client, "standard:bm_counter_read", **name)

    meter = {"meter_array_name": "MyIngress.police"}
    rates = [{"units_per_micros": 1.0, "burst_size": 10}, {"units_per_micros": 2.0, "burst_size": 20}]
    client.call("standard:bm_meter_array_set_rates", **meter, rates=rates)
    client.call("standard:bm_meter_set_rates", **meter, index=1, rates=[rates[0], rates[0]])
    assert client.call("standard:bm_meter_get_rates", **meter, index=3) == rates
    assert client.call("standard:bm_meter_get_rates", **meter, index=1) == [rates[0], rates[0]]
    refused_with(MeterError.BAD_RATES_LIST, client, "standard:bm_meter_array_set_rates", **meter, rates=[])
    refused_with(MeterError.INVALID_INDEX, client, "standard:bm_meter_set_rates", **meter, index=-1, rates=rates)
    name = {"meter_array_name": "none"}
    refused_with(MeterError.INVALID_METER_NAME, client, "standard:bm_meter_array_set_rates", **name, rates=rates)

    register = {"register_array_name": "MyIngress.seen"}
    client.call("standard:bm_register_write", **register, index=1, value=-1)
    client.call("standard:bm_register_write_range", **register, start_index=3, end_index=5, value=(7 << 16) + 4)
    assert client.call("standard:bm_register_read", **register, idx=1) == 0xFFFF, "a cell keeps its low bits"
    assert client.call("standard:bm_register_read_all", **register) == [0, 0xFFFF, 0, 4, 4, 0, 0, 0]
    client.call("standard:bm_register_reset", **register)
    assert client.call("standard:bm_register_read_all", **register) == [0] * 8
    refused_with(RegisterError.INVALID_INDEX, client, "standard:bm_register_read", **register, idx=8)
    ends = {"start_index": 5, "end_index": 9, "value": 1}
    refused_with(RegisterError.INVALID_INDEX, client, "standard:bm_register_write_range", **register, **ends)
    name = {"register_array_name": "none"}
    refused_with(RegisterError.INVALID_REGISTER_NAME, client, "standard:bm_register_reset", **name)


def test_value_sets(client: Client) -> None:
    named = {"parse_vset_name": "ParserImpl.odd_types"}
    for value in (b"\x12\x34", b"\x00\x07"):
        client.call("standard:bm_parse_vset_add", **named, value=value)
    client.call("standard:bm_parse_vset_remove", **named, value=b"\x12\x34")
    assert client.call("standard:bm_parse_vset_get", **named) == [b"\x00\x07"]
    refused_with(ValueSetError.ERROR, client, "standard:bm_parse_vset_add", **named, value=b"\1\0\0")
    client.call("standard:bm_parse_vset_clear", **named)
    assert client.call("standard:bm_parse_vset_get", **named) == []
    code = ValueSetError.INVALID_PARSE_VSET_NAME
    refused_with(code, client, "standard:bm_parse_vset_clear", parse_vset_name="none")


@pytest.mark.parametrize("service", ["simple_pre", "simple_pre_lag"])
def test_multicast_groups(client: Client, service: str) -> None:
    lags = {"lag_map": "1000"} if service == "simple_pre_lag" else {}
    assert [client.call(f"{service}:bm_mc_mgrp_create", mgrp=1) for _ in range(2)] == [1, 1], "as in BMv2"
    node = client.call(f"{service}:bm_mc_node_create", rid=7, port_map="110", **lags)
    client.call(f"{service}:bm_mc_node_associate", mgrp_handle=1, l1_handle=node)
    if lags:
        client.call("simple_pre_lag:bm_mc_set_lag_membership", lag_index=3, port_map="110000")
    found = json.loads(client.call(f"{service}:bm_mc_get_entries"))
    assert found["mgrps"] == [{"id": 1, "l1_handles": [node]}]
    assert found["l1_handles"] == [{"handle": node, "rid": 7, "l2_handle": node}]
    assert found["l2_handles"] == [{"handle": node, "ports": [1, 2], "lags": [3] if lags else []}]
    assert found["lags"] == ([{"id": 3, "ports": [4, 5]}] if lags else [])
    client.call(f"{service}:bm_mc_node_update", l1_handle=node, port_map="10", **lags)
    client.call(f"{service}:bm_mc_node_dissociate", mgrp_handle=1, l1_handle=node)
    client.call(f"{service}:bm_mc_node_destroy", l1_handle=node)
    refused_with(MulticastError.INVALID_L1_HANDLE, client, f"{service}:bm_mc_node_destroy", l1_handle=node)
    node = client.call(f"{service}:bm_mc_node_create", rid=7, port_map="")
    joining = {"mgrp_handle": 2, "l1_handle": node}
    refused_with(MulticastError.INVALID_MGRP_HANDLE, client, f"{service}:bm_mc_node_associate", **joining)
    for _ in range(2):
        client.call(f"{service}:bm_mc_mgrp_destroy", mgrp_handle=1)
    refused_with(MulticastError.INVALID_MGID, client, f"{service}:bm_mc_mgrp_create", mgrp=0)
    for port_map in ("12", "1" * 5000, "1" + "0" * 600):
        refused_with(MulticastError.ERROR, client, f"{service}:bm_mc_node_create", rid=1, port_map=port_map)


def test_clone_sessions(client: Client) -> None:
    client.call("simple_switch:mirroring_session_add", mirror_id=5, config={"port": 2})
    assert client.call("simple_switch:mirroring_session_get", mirror_id=5) == {"port": 2, "mgid": None}
    client.call("simple_pre_lag:bm_mc_mgrp_create", mgrp=1)
    client.call("simple_switch:mirroring_session_add", mirror_id=5, config={"mgid": 1})
    assert client.call("simple_switch:mirroring_session_get", mirror_id=5) == {"port": None, "mgid": 1}
    assert client.call("simple_switch:mirroring_mapping_get_egress_port", mirror_id=5) == -1
    for config in ({}, {"port": 1, "mgid": 1}):
        with pytest.raises(ApplicationError, match="a port or a multicast group"):
            client.call("simple_switch:mirroring_session_add", mirror_id=5, config=config)
    client.call("simple_switch:mirroring_session_delete", mirror_id=5)
    code = MirroringError.SESSION_NOT_FOUND
    refused_with(code, client, "simple_switch:mirroring_session_get", mirror_id=5)
    assert client.call("simple_switch:mirroring_mapping_add", mirror_id=6, egress_port=3) == 1
    assert client.call("simple_switch:mirroring_mapping_get_egress_port", mirror_id=6) == 3
    assert [client.call("simple_switch:mirroring_mapping_delete", mirror_id=6) for _ in range(2)] == [1, 0]


def test_the_program(client: Client, thrift_port: int, compiled: tuple[Path, Path]) -> None:
    document = compiled[0].read_bytes()
    assert client.call("standard:bm_get_config").encode() == document
    assert client.call("standard:bm_get_config_md5") == hashlib.md5(document).digest()
    info = client.call("standard:bm_mgmt_get_info")
    assert (info["device_id"], info["thrift_port"], info["notifications_socket"]) == (3, thrift_port, None)
    for kind, name in (
        (ResourceType.MATCH_TABLE, ROUTES),
        (ResourceType.ACTION_PROFILE, WAYS),
        (ResourceType.REGISTER, "MyIngress.seen"),
    ):
        number = client.call("standard:bm_get_id_from_name", resource_type=kind, resource_name=name)
        assert f'"name": "{name}"' in json.dumps(json.loads(document)), number
    wrong = {"resource_type": ResourceType.METER, "resource_name": ROUTES}
    refused_with(IdError.INVALID_RESOURCE_NAME, client, "standard:bm_get_id_from_name", **wrong)
    wrong = {"resource_type": 9, "resource_name": ROUTES}
    refused_with(IdError.INVALID_RESOURCE_TYPE, client, "standard:bm_get_id_from_name", **wrong)
    refused_with(SwapError.CONFIG_SWAP_DISABLED, client, "standard:bm_load_new_config", config_str="{}")
    refused_with(SwapError.NO_ONGOING_SWAP, client, "standard:bm_swap_configs")


def test_reset_state_empties_everything(client: Client) -> None:
    add_route(client, 1)
    client.call("standard:bm_register_write", register_array_name="MyIngress.seen", index=1, value=5)
    client.call("simple_pre:bm_mc_node_create", rid=7, port_map="110")
    client.call("standard:bm_reset_state")
    assert client.call("standard:bm_mt_get_num_entries", table_name=ROUTES) == 0
    assert client.call("standard:bm_register_read_all", register_array_name="MyIngress.seen") == [0] * 8
    assert json.loads(client.call("simple_pre:bm_mc_get_entries"))["l1_handles"] == []
    assert add_route(client, 1) == 0


def test_queues_ports_and_time(client: Client) -> None:
    assert client.call("simple_switch:set_all_egress_queue_depths", depth_pkts=64) == 0
    assert client.call("simple_switch:set_all_egress_queue_rates", rate_pps=0) == 0
    one_port: list[tuple[str, dict[str, int]]] = [
        ("set_egress_queue_depth", {"port_num": 1, "depth_pkts": 64}),
        ("set_egress_queue_rate", {"port_num": 1, "rate_pps": 5}),
    ]
    for name, arguments in one_port:
        with pytest.raises(ApplicationError, match="there is no port 1"):
            client.call(f"simple_switch:{name}", **arguments)
        priority_name = name.replace("egress_queue", "egress_priority_queue")
        with pytest.raises(ApplicationError, match="its queues share memory and rate"):
            client.call(f"simple_switch:{priority_name}", priority=3, **arguments)
    assert client.call("simple_switch:get_time_elapsed_us") >= 0
    assert client.call("simple_switch:get_time_since_epoch_us") > 1_700_000_000_000_000
    assert client.call("standard:bm_dev_mgr_show_ports") == []
    refused_with(PortError.ERROR, client, "standard:bm_dev_mgr_remove_port", port_num=1)
    added = {"iface_name": "eth7", "port_num": 1, "pcap_path": ""}
    refused_with(PortError.ERROR, client, "standard:bm_dev_mgr_add_port", **added)


def test_calls_that_the_switch_has_nothing_for_say_so(client: Client) -> None:
    for name in ("bm_learning_ack_buffer", "bm_learning_ack", "bm_learning_set_timeout"):
        refused_with(LearnError.ERROR, client, f"standard:{name}", list_id=1)
    for name in ("bm_set_crc16_custom_parameters", "bm_set_crc32_custom_parameters", "bm_set_toeplitz_hash_key"):
        with pytest.raises(ApplicationError, match="hash functions keep the program's parameters"):
            client.call(f"standard:{name}", calc_name="calc")
    with pytest.raises(ApplicationError, match="cannot be saved"):
        client.call("standard:bm_serialize_state")
    with pytest.raises(ApplicationError, match="one context"):
        client.call("standard:bm_mt_get_num_entries", cxt_id=1, table_name=ROUTES)
