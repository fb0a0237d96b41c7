"""p4-utils' clients of switches, over Thrift's calls and over P4Runtime's, on a switch without ports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.refusals import refused
from weft.compiler import compile_file
from weft.errors import BadInputError, EnvironmentLacksError
from weft.p4utils.errors import UnsupportedCallError
from weft.p4utils.utils.sswitch_p4runtime_API import SimpleSwitchP4RuntimeAPI
from weft.p4utils.utils.sswitch_thrift_API import SimpleSwitchThriftAPI, UIn_Error
from weft.switch.cli.foreground import Foreground, Options
from weft.switch.daemon.config import DaemonConfig, SwitchConfig
from weft.system.thrift_ports import Served, announced

PROGRAM = Path(__file__).parent / "course" / "router.p4"
MAC = "00:00:00:00:00:01"


@pytest.fixture
def grpc_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A switch that has the Thrift port 9090; its P4Runtime port."""
    monkeypatch.setenv("WEFT_STATE_FILE", str(tmp_path / "lab.json"))
    result = compile_file(PROGRAM)
    program, info = tmp_path / "router.json", tmp_path / "router.txtpb"
    program.write_text(result.json_text())
    info.write_text(result.p4info_text())
    config = DaemonConfig(
        grpc_address="127.0.0.1:0", switches=(SwitchConfig(device_id=0, name="s1", drop_port=511, ports=()),)
    )
    running = Foreground(config, Options(program, info))
    address = running._daemon.server.address
    try:
        with announced({9090: Served(address, 0)}):
            yield int(address.rpartition(":")[2])
    finally:
        running._daemon.close()


@pytest.fixture
def thrift(grpc_port: int) -> Iterator[SimpleSwitchThriftAPI]:
    client = SimpleSwitchThriftAPI(9090)
    yield client
    client._switch.close()


@pytest.fixture
def p4runtime(grpc_port: int) -> Iterator[SimpleSwitchP4RuntimeAPI]:
    client = SimpleSwitchP4RuntimeAPI(0, grpc_port)
    yield client
    client.teardown()


def test_entries_are_added_found_and_removed(thrift: SimpleSwitchThriftAPI, capsys: pytest.CaptureFixture[str]) -> None:
    assert thrift.table_add("routes", "forward", ["10.0.1.0/24"], [MAC, "1"]) == 0
    assert thrift.table_add("MyIngress.routes", "MyIngress.forward", ["10.0.2.0/24"], [MAC, 2]) == 1
    assert thrift.table_num_entries("routes") == 2
    assert thrift.get_handle_from_match("routes", ["10.0.2.0/24"]) == 1
    assert thrift.table_modify_match("routes", "drop", ["10.0.2.0/24"]) == 1
    assert thrift.table_modify("routes", "forward", 1, [MAC, "3"]) == 1
    thrift.table_dump("routes")
    assert "forward - 0x1, 0x3" in capsys.readouterr().out
    thrift.table_delete_match("routes", ["10.0.1.0/24"])
    thrift.table_delete("routes", 1)
    assert thrift.table_num_entries("routes") == 0
    for call in (thrift.table_delete_match, lambda *args: thrift.table_modify_match(args[0], "drop", args[1])):
        with pytest.raises(UIn_Error, match=re.escape("Table routes has no match ['10.0.3.0/24']")):
            call("routes", ["10.0.3.0/24"])


def test_entries_of_any_priority_are_found_by_their_keys(thrift: SimpleSwitchThriftAPI) -> None:
    key = ["10.0.0.0&&&0xff000000", "6->17"]
    assert thrift.table_add("filters", "drop", key, [], prio=5) == 0
    assert thrift.get_handle_from_match("filters", key) == 0
    thrift.table_delete_match("filters", key)
    assert thrift.table_num_entries("filters") == 0


def test_what_the_switch_refuses_is_printed(thrift: SimpleSwitchThriftAPI, capsys: pytest.CaptureFixture[str]) -> None:
    thrift.table_add("groups", "flood", [MAC], ["1"])
    assert thrift.table_add("groups", "flood", [MAC], ["1"]) is None
    assert "ALREADY_EXISTS" in capsys.readouterr().out
    for call in (
        lambda: thrift.table_add("no_table", "flood", [MAC]),
        lambda: thrift.table_add("groups", "no_action", [MAC]),
        lambda: thrift.table_add("groups", "flood", ["x"], ["1"]),
        lambda: thrift.register_read("last_source", 8),
        lambda: thrift.mc_mgrp_create(0),
        lambda: thrift.set_queue_rate(10, 1, 3),
    ):
        assert call() is None
        assert capsys.readouterr().out.startswith("Error: ")


def test_registers_counters_and_meters(thrift: SimpleSwitchThriftAPI) -> None:
    thrift.register_write("last_source", 3, 77)
    thrift.register_write("last_source", [4, 6], 5)
    assert thrift.register_read("last_source", 3) == 77
    assert thrift.register_read("last_source") == [0, 0, 0, 77, 5, 5, 0, 0]
    thrift.register_reset("last_source")
    assert thrift.register_read("MyIngress.last_source") == [0] * 8
    thrift.counter_write("received", 2, pkts=3, byts=300)
    assert thrift.counter_read("received", 2) == (300, 3)
    thrift.counter_reset("received")
    assert thrift.counter_read("received", 2) == (0, 0)
    thrift.meter_set_rates("rates", 1, [(0.00001, 10), (0.5, 20)])
    assert thrift.meter_get_rates("rates", 1) == [(0.00001, 10), (0.5, 20)]
    thrift.meter_array_set_rates("rates", [(1, 1), (2, 2)])
    assert thrift.meter_get_rates("rates", 7) == [(1.0, 1), (2.0, 2)]


def test_groups_and_clone_sessions(thrift: SimpleSwitchThriftAPI, capsys: pytest.CaptureFixture[str]) -> None:
    assert thrift.mc_mgrp_create(1) == 1
    assert thrift.mc_node_create(0, [1, 2, "3"]) == 0
    thrift.mc_node_associate(1, 0)
    thrift.mirroring_add(100, 4)
    capsys.readouterr()
    thrift.mc_dump()
    thrift.mirroring_get(100)
    said = capsys.readouterr().out
    assert "(ports=[1, 2, 3], lags=[])" in said
    assert "port=4" in said


def test_a_reset_empties_everything(thrift: SimpleSwitchThriftAPI) -> None:
    thrift.table_add("routes", "forward", ["10.0.1.0/24"], [MAC, "1"])
    thrift.table_set_default("routes", "forward", [MAC, "2"])
    thrift.register_write("last_source", 0, 1)
    thrift.mc_mgrp_create(1)
    thrift.reset_state()
    assert thrift.table_num_entries("routes") == 0
    assert thrift.register_read("last_source", 0) == 0
    assert thrift.mc_mgrp_create(1) == 1, "the group is gone"
    assert thrift.table_add("routes", "forward", ["10.0.1.0/24"], [MAC, "1"]) == 0, "handles begin again"


def test_the_program_is_described(thrift: SimpleSwitchThriftAPI) -> None:
    assert set(thrift.get_tables()) == {"MyIngress.routes", "MyIngress.filters", "MyIngress.groups"}
    assert list(thrift.get_register_arrays()) == ["MyIngress.last_source"]
    assert set(thrift.get_counter_arrays()) == {"MyIngress.received", "MyIngress.routed"}
    assert thrift.get_custom_crc_calcs() == {}


def test_both_clients_write_side_by_side(thrift: SimpleSwitchThriftAPI, p4runtime: SimpleSwitchP4RuntimeAPI) -> None:
    assert p4runtime.table_add("groups", "flood", ["00:00:00:00:00:02"], ["2"]) is True
    assert thrift.table_add("groups", "flood", [MAC], ["1"]) is not None
    assert p4runtime.table_add("groups", "flood", ["00:00:00:00:00:03"], ["2"]) is True
    assert thrift.table_num_entries("groups") == 3


def test_p4runtime_entries(p4runtime: SimpleSwitchP4RuntimeAPI, capsys: pytest.CaptureFixture[str]) -> None:
    key = ["10.0.0.0&&&0xff000000", "6..17"]
    assert p4runtime.table_add("filters", "drop", key, [], prio=7)
    assert p4runtime.table_modify_match("filters", "NoAction", key, [], prio=7)
    assert p4runtime.table_delete_match("filters", key, prio=6) is None, "its priority is part of the key"
    assert "Error: " in capsys.readouterr().out
    assert p4runtime.table_delete_match("filters", key, prio=7)
    route = ["10.0.1.0/24"]
    assert p4runtime.table_add("routes", "forward", route, [MAC, "1"], pkts=4, byts=400)
    assert p4runtime.direct_counter_read("routed", route) == (400, 4)
    assert p4runtime.direct_counter_write("routed", route, pkts=1, byts=60)
    assert p4runtime.direct_counter_reset("routed")
    assert p4runtime.direct_counter_read("routed", route) == (0, 0)
    assert p4runtime.table_set_default("routes", "forward", [MAC, "2"])
    assert p4runtime.table_reset_default("routes")
    assert p4runtime.table_clear("routes")
    assert p4runtime.direct_counter_read("routed", route) is None


def test_p4runtime_cells_groups_and_digests(p4runtime: SimpleSwitchP4RuntimeAPI) -> None:
    assert p4runtime.counter_write("received", 1, pkts=2, byts=99)
    assert p4runtime.counter_read("received", 1) == (99, 2)
    assert p4runtime.meter_set_rates("rates", 1, [(10, 10), (500_000, 20)])
    assert p4runtime.meter_get_rates("rates", 1) == [(10, 10), (500_000, 20)]
    assert p4runtime.mc_mgrp_create(2, [1, 2], [5, 6])
    assert p4runtime.mc_set_replicas(2, [3])
    assert p4runtime.mc_get_replicas(2) == ([3], [1])
    assert p4runtime.mc_mgrp_destroy(2)
    assert p4runtime.cs_create(100, [4])
    assert p4runtime.cs_get_replicas(100) == ([4], [1])
    assert p4runtime.cs_destroy(100)
    assert p4runtime.mc_mgrp_create(3, [1, 2], [5]) is None, "an instance is missing"
    assert p4runtime.digest_enable("seen_t", 1_000_000, 10, 2_000_000)
    assert p4runtime.digest_get_conf("seen_t") == (1_000_000, 10, 2_000_000)
    assert p4runtime.get_digest_list(timeout=0.01) is None
    p4runtime.reset_state()
    assert p4runtime.digest_get_conf("seen_t") is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda client: client.client, "SimpleSwitchThriftAPI.client is not supported"),
        (lambda client: client.set_crc32_parameters("x", 1, 2, 3, True, True), "set_crc32_parameters is not supported"),
        (lambda client: client.mirroring_add_port_and_mgrp(1, 2, 3), "mirroring_add_port_and_mgrp is not supported"),
    ],
)
def test_calls_that_weft_lacks_are_named(call, words: str, thrift: SimpleSwitchThriftAPI) -> None:
    with pytest.raises(UnsupportedCallError, match=words):
        call(thrift)


def test_switches_that_are_not_there(grpc_port: int) -> None:
    with refused(EnvironmentLacksError, valid="9090"):
        SimpleSwitchThriftAPI(9091)
    with refused(BadInputError, valid="localhost, 127.0.0.1, 0.0.0.0, ::1"):
        SimpleSwitchThriftAPI(9090, "192.0.2.1")
    with refused(BadInputError, valid="127.0.0.1"):
        SimpleSwitchP4RuntimeAPI(0, grpc_port, "192.0.2.1")
    with pytest.raises(EnvironmentLacksError):
        SimpleSwitchP4RuntimeAPI(9, grpc_port)
