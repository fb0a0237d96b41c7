"""simple_switch_CLI's commands over P4Runtime, on a switch behind the real server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import grpc
import pytest
from click.testing import CliRunner
from finsy.proto import p4i, p4r
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.l2 import Ether

from tests.refusals import refused
from weft.cli import weft
from weft.commands.switch_cli import _line_at_prompt
from weft.controller.errors import RequestRefusedError
from weft.controller.grpc_targets import GrpcTarget, open_channel
from weft.controller.lab import Lab
from weft.controller.pipeline import Pipeline
from weft.controller.readers import for_each_switch
from weft.controller.session import SwitchSession
from weft.controller.stub import P4RuntimeStub
from weft.controller.switch_cli import COMMANDS, CommandError, CommandSession
from weft.controller.switch_cli.arrays import meter_config
from weft.controller.switch_cli.commands import REFUSED
from weft.controller.switch_cli.management import MANAGE, over_grpc
from weft.controller.switch_cli.tables import table_named
from weft.controller.switch_cli.values import parse_match, parse_value, shown_match
from weft.engine import Engine
from weft.scenario.program import compile_program
from weft.switch.bmv2json import load_program
from weft.switch.daemon.config import BufferConfig, PfcConfig, PortConfig, SwitchConfig
from weft.switch.daemon.manage_service import (
    METHOD,
    SERVICE,
    ManageRequest,
    UnmanageableError,
    handler,
    manage,
)
from weft.switch.daemon.wired_switches import WiredSwitches
from weft.switch.oracle import OracleSwitch, Timing
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.service import Server
from weft.topologies.addressing import CPU_PORT

PROGRAM = Path(__file__).with_name("everything.p4")
DEVICE = 3
_Result = TypeVar("_Result")


class Switch:
    """A switch with the program, on which lines are run."""

    def __init__(self, address: str, oracle: OracleSwitch) -> None:
        self.address = address
        self.oracle = oracle

    def run(self, *lines: str) -> list[str]:
        """Run lines in one session and return what each says."""

        async def action(commands: CommandSession) -> list[str]:
            return [await commands.run(line) for line in lines]

        return self._with_commands(action)

    def idle_timeouts_ns(self, table: str) -> list[int]:
        """Return those of a table's entries."""

        async def action(commands: CommandSession) -> list[int]:
            return [each.idle_timeout_ns for each in await commands.entries(table_named(commands, table))]

        return self._with_commands(action)

    def _with_commands(self, action: Callable[[CommandSession], Awaitable[_Result]]) -> _Result:
        async def in_session(session: SwitchSession) -> _Result:
            async def take_over() -> None:
                await session.negotiate_version()
                await session.become_primary(preempt=True)

            return await action(CommandSession(session, before_writing=take_over))

        lab = Lab({"s1": GrpcTarget(self.address, DEVICE)})
        return asyncio.run(for_each_switch(lab, ["s1"], in_session))[0]

    def send(self, destination: str = "10.0.1.1") -> dict[int, bytes]:
        """Send a frame from port 1 and return those that leave, by port."""
        octets = bytes(int(octet) for octet in destination.split("."))
        frame = bytes(Ether(dst="02:00:00:00:00:09", type=0x0800)) + b"\x0a\0\0\7" + octets + b"\x11\x40" + bytes(40)
        return {output.port: output.data for output in self.oracle.process(1, frame, Timing())}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    compiled = compile_program(PROGRAM, tmp_path_factory.mktemp("program"))
    return Pipeline.load(compiled.p4info, compiled.json)


@pytest.fixture
def switch(program: Pipeline) -> Iterator[Switch]:
    oracle = OracleSwitch()
    server = Server({DEVICE: Device(DEVICE, oracle, CPU_PORT)}, "127.0.0.1:0")
    server.start()

    async def load() -> None:
        channel = open_channel(server.address)
        session = SwitchSession("s1", DEVICE, P4RuntimeStub(channel), program)
        await session.negotiate_version()
        await session.become_primary()
        await session.push_pipeline()
        await session.close()
        await channel.close()

    try:
        asyncio.run(load())
        yield Switch(server.address, oracle)
    finally:
        server.stop()


def test_entries_forward_and_handles_name_them(switch: Switch) -> None:
    added, second, count, entry, *_ = switch.run(
        "table_add ipv4_lpm forward 10.0.1.1/32 => 08:00:00:00:01:11 2",
        "table_add MyIngress.ipv4_lpm MyIngress.forward 10.0.0.0/8 => 0x080000000222 3",
        "table_num_entries ipv4_lpm",
        "table_dump_entry ipv4_lpm 0",
        "# a comment",
        "//another, as in some files",
        "",
    )
    assert (added, second, count) == (
        "Entry has been added with handle 0", "Entry has been added with handle 1", "2",
    )  # fmt: skip
    assert "hdr.ipv4.dst        : LPM       0xa000101/32" in entry
    assert "Action entry: MyIngress.forward - 0x80000000111, 0x2" in entry
    assert list(switch.send("10.0.1.1")) == [2]
    assert list(switch.send("10.9.1.1")) == [3]


def test_entries_change_and_go(switch: Switch) -> None:
    switch.run(
        "table_set_default ipv4_lpm forward 08:00:00:00:00:01 4",
        "table_add ipv4_lpm forward 10.0.1.1/32 => 1 2",
        "table_modify ipv4_lpm forward 0 => 1 5",
    )
    assert list(switch.send("10.0.1.1")) == [5]
    switch.run("table_dump ipv4_lpm", "table_delete ipv4_lpm 0")
    assert list(switch.send("10.0.1.1")) == [4]
    switch.run("table_reset_default ipv4_lpm")
    assert switch.send("10.0.1.1") == {}
    switch.run("table_add ipv4_lpm forward 10.0.1.1/32 => 1 2", "table_clear ipv4_lpm")
    assert switch.run("table_num_entries ipv4_lpm") == ["0"]


def test_the_lowest_number_is_the_first_priority(switch: Switch) -> None:
    switch.run(
        "table_set_default ipv4_lpm forward 1 2",
        "table_add acl drop 10.0.0.7&&&255.255.255.255 0->255 0x0800 0&&&0 => 20",
        "table_add acl NoAction 10.0.0.0&&&255.0.0.0 17->17 0x0800 64 => 10",
    )
    assert list(switch.send()) == [2]
    (text,) = switch.run("table_dump acl")
    assert text.index("Priority: 10") < text.index("Priority: 20") or "Priority: 10" in text
    assert "* hdr.ipv4.protocol   : RANGE     0x11->0x11" in text


def test_profiles_groups_and_their_tables(switch: Switch) -> None:
    said = switch.run(
        "table_set_default ipv4_lpm forward 1 9",
        "act_prof_create_member ways forward 1 5",
        "act_prof_create_member ways forward 1 6",
        "act_prof_create_group ways",
        "act_prof_add_member_to_group ways 1 0",
        "table_indirect_add_with_group balanced 02:00:00:00:00:09 => 0",
        "table_indirect_add balanced 1 => 0",
        "act_prof_dump ways",
        "table_dump balanced",
    )
    assert said[1:4] == [
        "Member has been created with handle 0",
        "Member has been created with handle 1",
        "Group has been created with handle 0",
    ]
    assert "Members: [1]" in said[7]
    assert "Index: group(0)" in said[8]
    assert "Index: member(0)" in said[8]
    switch.run("act_prof_remove_member_from_group ways 1 0", "table_indirect_delete balanced 0")
    assert switch.run("table_num_entries balanced") == ["1"]


def test_multicast_and_mirroring(switch: Switch) -> None:
    said = switch.run(
        "table_set_default ipv4_lpm spread 3",
        "mc_mgrp_create 3",
        "mc_node_create 7 2 4",
        "mc_node_create 8 5",
        "mc_node_associate 3 0",
        "mc_node_associate 3 1",
        "mirroring_add 5 6",
        "mirroring_get 5",
        "mc_dump",
    )
    assert said[2] == "node was created with handle 0"
    assert said[7] == "MirroringSessionConfig(port=6, mgid=None)"
    assert "rid=7) -> (ports=[2, 4], lags=[])" in said[8]
    assert sorted(switch.send()) == [2, 4, 5, 6]
    # Another session finds the nodes in the group.
    switch.run("mc_dump", "mc_node_dissociate 3 0", "mirroring_delete 5")
    assert sorted(switch.send()) == [5]
    switch.run("mc_dump", "mc_node_update 0 3", "mirroring_add 5 6", "mirroring_add 5 7")
    assert sorted(switch.send()) == [3, 7]
    switch.run("mc_mgrp_destroy 3")
    assert sorted(switch.send()) == [7]


def test_a_lag_sends_to_one_of_its_ports_as_in_bmv2(switch: Switch) -> None:
    """BMv2 takes the member of number 255 modulo their count, for every packet."""
    lines = [
        "table_set_default ipv4_lpm spread 3",
        "mc_mgrp_create 3",
        "mc_set_lag_membership 1 4 6 5 7",
        "mc_node_create 7 2 | 1 2",
        "mc_node_associate 3 0",
    ]
    *_, shown = switch.run(*lines, "mc_dump")
    assert "rid=7) -> (ports=[2], lags=[1, 2])" in shown
    assert "LAGS\nlag(1) -> ports=[4, 5, 6, 7]" in shown
    assert sorted(switch.send()) == [2, 7]
    switch.run("mc_mgrp_destroy 3", *lines, "mc_set_lag_membership 1 4 5", "mc_set_lag_membership 2 6")
    assert sorted(switch.send()) == [2, 5, 6]
    with refused(CommandError, place="mc_set_lag_membership", valid="each port once"):
        switch.run("mc_mgrp_destroy 3", *lines, "mc_set_lag_membership 1 2")


def test_clones_go_to_a_multicast_group_as_it_changes(switch: Switch) -> None:
    said = switch.run(
        "table_add ipv4_lpm forward 10.0.0.0/8 => 1 2",
        "mc_mgrp_create 9",
        "mc_node_create 1 3 4",
        "mc_node_associate 9 0",
        "mirroring_add_mc 5 9",
        "mirroring_get 5",
        "mc_node_update 0 4 5",
    )
    assert said[5] == "MirroringSessionConfig(port=None, mgid=9)"
    assert sorted(switch.send()) == [2, 4, 5]
    switch.run("mirroring_add 5 6")
    assert sorted(switch.send()) == [2, 6]


def test_value_sets_counters_and_the_program_itself(switch: Switch, tmp_path: Path) -> None:
    switch.run("table_add ipv4_lpm forward 10.0.0.0/8 => 1 2")
    switch.send()
    path = tmp_path / "program.json"
    said = switch.run(
        "show_pvs",
        "pvs_add odd_types 0x800",
        "pvs_add odd_types 2054",
        "pvs_add odd_types 0x800",
        "pvs_get odd_types",
        "pvs_remove odd_types 0x800",
        "pvs_get odd_types",
        "pvs_clear odd_types",
        "pvs_get odd_types",
        "counter_write by_port 1 3 500",
        "counter_read by_port 1",
        "counter_write hits 0 7 900",
        "counter_read hits 0",
        f"write_config_to_file {path}",
    )
    assert said[0].split() == ["ParserImpl.odd_types", "[bitwidth=16]"]
    assert (said[4], said[6], said[8]) == ("0x800\n0x806", "0x806", "")
    assert said[9] == "by_port[1] has been updated"
    assert said[10] == "by_port[1]= (500 bytes, 3 packets)"
    assert said[12] == "hits[0]= (900 bytes, 7 packets)"
    assert load_program(path.read_text()).counter_arrays


SIMPLE_SWITCH_CLI = """
set_queue_depth set_queue_rate mirroring_add mirroring_add_mc mirroring_delete mirroring_get get_time_elapsed
get_time_since_epoch shell show_tables show_actions table_show_actions table_info table_set_default table_reset_default
table_num_entries table_clear table_add table_set_timeout table_modify table_delete act_prof_create_member
table_indirect_create_member act_prof_delete_member table_indirect_delete_member act_prof_modify_member
table_indirect_modify_member table_indirect_add table_indirect_add_with_group table_indirect_delete
table_indirect_set_default table_indirect_set_default_with_group table_indirect_reset_default act_prof_create_group
table_indirect_create_group act_prof_delete_group table_indirect_delete_group act_prof_add_member_to_group
table_indirect_add_member_to_group act_prof_remove_member_from_group table_indirect_remove_member_from_group
mc_mgrp_create mc_mgrp_destroy mc_node_create mc_node_update mc_node_associate mc_node_dissociate mc_node_destroy
mc_set_lag_membership mc_dump load_new_config_file swap_configs meter_array_set_rates meter_set_rates meter_get_rates
counter_read counter_write counter_reset register_read register_write register_reset table_dump_entry
act_prof_dump_member table_dump_member act_prof_dump_group table_dump_group act_prof_dump table_dump
table_dump_entry_from_key show_pvs pvs_add pvs_remove pvs_get pvs_clear port_add port_remove show_ports switch_info
reset_state write_config_to_file serialize_state set_crc16_parameters set_crc32_parameters set_toeplitz_hash_key help
"""


def test_every_command_of_simple_switch_is_one_or_is_refused_by_name() -> None:
    assert set(SIMPLE_SWITCH_CLI.split()) == COMMANDS.keys() | REFUSED.keys()


@pytest.fixture
def managed() -> WiredSwitches:
    """A switch with ports 1 and 2, behind what serves its queues."""
    ports = tuple(PortConfig(port=number, rate_bps=10**9) for number in (1, 2))
    return WiredSwitches(Engine(seed=1), [SwitchConfig(device_id=DEVICE, name="s1", ports=ports)])


def test_client_and_server_name_the_same_method() -> None:
    assert f"/{SERVICE}/{METHOD}" == MANAGE


def test_queues_are_set_and_the_time_is_told(managed: WiredSwitches, tmp_path: Path) -> None:
    wired = managed.switches[DEVICE]
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers([handler(managed.switches)])
    address = f"unix:{tmp_path}/switch.sock"
    server.add_insecure_port(address)
    server.start()

    def run(line: str, device: int = DEVICE) -> str:
        session = CommandSession(SimpleNamespace(), manage=over_grpc(address, "s1", device))  # type: ignore[arg-type]
        return asyncio.run(session.run(line))

    try:
        run("set_queue_depth 10")
        run("set_queue_rate 500 2")
        run("set_queue_depth 7 1")
        first, second = (wired.ports[number].transmit for number in (1, 2))
        assert (first.queue_capacity_bytes, second.queue_capacity_bytes) == (7 * 1518, 10 * 1518)
        assert (first.packet_rate_pps, second.packet_rate_pps) == (0, 500)
        wired.switch.engine.run_until(3_500_000)
        assert run("get_time_elapsed") == "3"
        assert abs(int(run("get_time_since_epoch")) - time.time_ns() // 1000) < 60 * 10**6
        with refused(RequestRefusedError, problem="there is no port 3 (valid: 1, 2)"):
            run("set_queue_rate 1 3")
        with refused(RequestRefusedError, problem="unknown device id 4 (valid: 3)"):
            run("set_queue_rate 1", device=4)
    finally:
        server.stop(None)


def test_ports_with_flow_control_have_the_rate_of_their_links() -> None:
    flow_control = PfcConfig(classes=(3,), source_mac="02:00:00:00:00:01", xoff_bytes=9000, headroom_bytes=9000)
    ports = (
        PortConfig(port=1, rate_bps=10**9, pfc=flow_control),
        PortConfig(port=2, rate_bps=10**9),
    )
    config = SwitchConfig(device_id=DEVICE, name="s1", ports=ports, buffer=BufferConfig(capacity_bytes=10**6))
    wired = WiredSwitches(Engine(seed=1), [config]).switches[DEVICE]
    for port in (1, None):
        with refused(UnmanageableError, problem="a port with PFC or credits has"):
            manage(wired, ManageRequest(device_id=DEVICE, rate_pps=5, port=port), None)
    assert wired.ports[2].transmit.packet_rate_pps == 0, "nothing has been done"
    manage(wired, ManageRequest(device_id=DEVICE, rate_pps=5, port=2), None)
    manage(wired, ManageRequest(device_id=DEVICE, rate_pps=0), None)
    assert wired.ports[2].transmit.packet_rate_pps == 0


def test_registers_counters_and_meters(switch: Switch) -> None:
    switch.run("table_add ipv4_lpm forward 10.0.0.0/8 => 1 2")
    switch.send()
    said = switch.run(
        "register_read seen 0",
        "register_write seen 7 0xffff",
        "register_read seen",
        "counter_read by_port 1",
        "counter_read hits 0",
        "meter_set_rates police 2 0.001:10 0.002:20",
        "meter_get_rates police 2",
        "register_reset seen",
        "register_read seen 7",
        "counter_reset by_port",
        "counter_read by_port 1",
    )
    assert said[0] == "seen[0]= 1"
    assert said[2] == "seen= 1, 0, 0, 0, 0, 0, 0, 65535"
    assert said[3] == said[4].replace("hits[0]", "by_port[1]") == "by_port[1]= (64 bytes, 1 packets)"
    assert said[6].splitlines() == [
        "0: info rate = 0.001, burst size = 10",
        "1: info rate = 0.002, burst size = 20",
    ]
    assert said[8] == "seen[7]= 0"
    assert said[10] == "by_port[1]= (0 bytes, 0 packets)"


def test_rates_of_a_tables_meter_are_those_of_all_its_entries_and_of_later_ones(switch: Switch) -> None:
    said = switch.run(
        "table_add ipv4_lpm forward 10.0.0.0/8 => 1 2",
        "table_add sources measure 10.0.1.1 =>",
        "meter_array_set_rates speeds 0.000001:2 0.000001:2",
        "table_add sources measure 10.0.1.2 =>",
        "meter_get_rates speeds 0",
        "meter_get_rates speeds 1",
    )
    assert said[4] == said[5]
    assert said[4].splitlines()[0] == "0: info rate = 1e-06, burst size = 2"
    for destination in ("10.0.1.1", "10.0.1.2"):
        assert [list(switch.send(destination)) for _ in range(3)] == [[2], [2], []], "a burst of two, then red"
    assert [list(switch.send("10.0.1.3")) for _ in range(3)] == [[2]] * 3, "no entry, no meter"


def test_an_entry_that_is_changed_keeps_its_rates_and_its_timeout(switch: Switch) -> None:
    said = switch.run(
        "table_add ipv4_lpm forward 10.0.0.0/8 => 1 2",
        "table_add sources NoAction 10.0.1.1 =>",
        "table_add sources measure 10.0.1.2 =>",
        "meter_set_rates speeds 0 0.000001:1 0.000001:1",
        "table_set_timeout sources 0 7000",
        "table_modify sources measure 0",
        "meter_get_rates speeds 0",
        "meter_get_rates speeds 1",
        "table_dump_entry sources 0",
    )
    assert said[6].splitlines()[0] == "0: info rate = 1e-06, burst size = 1"
    assert said[7] == "the meter has no rates: every packet is green"
    assert "measure" in said[8]
    assert [list(switch.send("10.0.1.1")) for _ in range(2)] == [[2], []]
    assert [list(switch.send("10.0.1.2")) for _ in range(2)] == [[2], [2]]
    assert switch.idle_timeouts_ns("sources") == [7 * 10**9, 0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tabel_add x y", "unknown command 'tabel_add'; did you mean 'table_add'?"),
        ("table_add ipv4_lmp drop 1/32 =>", "table_add: unknown table 'ipv4_lmp'; did you mean 'ipv4_lpm'?"),
        (
            "table_add ipv4_lpm dorp 1/32 =>",
            "unknown action of MyIngress.ipv4_lpm 'dorp'; did you mean 'drop'?",
        ),
        ("table_add ipv4_lpm drop 10.0.0.0 =>", "'10.0.0.0' has no prefix length (valid: such as"),
        ("table_add ipv4_lpm drop 10.0.0.0/33 =>", "prefix length: '33' is out of range (valid: 0 to 32)"),
        (
            "table_add ipv4_lpm drop 10.0.0.256/32 =>",
            "'10.0.0.256' is not a value (valid: such as 7, 0x1f, 10.0.1.1)",
        ),
        ("table_add ipv4_lpm forward 1/32 => 1", "has 2 parameters, 1 are given (valid: mac(48), port(9))"),
        ("table_add ipv4_lpm forward 1/32 => 1 512", "'512' does not fit into 9 bits (valid: 0 to 511)"),
        (
            "table_add ipv4_lpm drop 1/32 2/32 =>",
            "has 1 key fields, 2 are given before => (valid: hdr.ipv4.dst (lpm))",
        ),
        ("table_add acl drop 1 0->255 1 1 => 5", "'1' has no mask (valid: such as 0x0800&&&0xffff)"),
        ("table_add acl drop 1&&&1 9->2 1 1 => 5", "'9->2' ends before it begins"),
        ("table_add acl drop 1&&&1 0->255 1 1 =>", "has no priority"),
        ("table_add balanced drop 1 =>", "refer to a profile's members (valid: table_indirect_…)"),
        ("table_indirect_add ipv4_lpm 1/32 => 0", "have direct actions (valid: table_add …)"),
        ("table_delete ipv4_lpm 9", "no entry of MyIngress.ipv4_lpm has the handle 9 (valid: none"),
        ("table_delete ipv4_lpm", "table_delete: has 1 word (valid: table_delete <table> <handle>)"),
        ("table_set_timeout ipv4_lpm 0 5", "has no support_timeout"),
        ("act_prof_add_member_to_group ways 0 0", "no member has the handle 0 (valid: none"),
        ("mc_mgrp_create 0", "group: '0' is out of range (valid: 1 to 65535)"),
        ("mc_node_create 1 2 2", "lists a port twice: 2 2"),
        ("mc_node_associate 1 0", "no node has the handle 0 (valid: none; mc_node_create makes one)"),
        ("mirroring_get 8", "there is no clone session 8"),
        ("register_write seen 8 1", "index: '8' is out of range (valid: 0 to 7)"),
        ("register_write seen 0 70000", "'70000' does not fit into 16 bits"),
        ("meter_set_rates police 0 2:1 1:1", "the peak rate 1:1 is below the committed rate 2:1"),
        ("reset_state", "reset_state is not possible here: the controller's entries would go, too"),
        ("set_queue_rate 100 1", "set_queue_rate: P4Runtime does not offer it"),
        ("set_queue_rate 100 1 7", "names the priority '7' (valid: only the port"),
        ("set_queue_depth 0", "packets: '0' is out of range (valid: 1 to"),
        ("counter_write by_port 4 1 1", "index: '4' is out of range (valid: 0 to 3)"),
        ("mc_set_lag_membership 256 1", "lag: '256' is out of range (valid: 0 to 255)"),
        ("mirroring_add_mc 5 9", "there is no multicast group 9 (valid: none; mc_mgrp_create makes one)"),
        ("pvs_add odd_types 0x10000", "'0x10000' does not fit into 16 bits"),
        ("pvs_get odd_type", "unknown parser value set 'odd_type'; did you mean"),
        ("act_prof_dump_member ways 0", "no member has the handle 0 (valid: none"),
        (
            "write_config_to_file /nowhere/at/all",
            "/nowhere/at/all cannot be written: No such file or directory",
        ),
        ("table_add 'x", "No closing quotation"),
    ],
)
def test_what_is_wrong_is_said(switch: Switch, line: str, words: str) -> None:
    with pytest.raises(CommandError) as refused:
        switch.run(line)
    assert words in str(refused.value)


def test_help_knows_every_command(switch: Switch) -> None:
    listed, *each = switch.run("help", *(f"help {name}" for name in [*COMMANDS, *REFUSED]))
    assert listed.splitlines() == sorted(COMMANDS)
    assert all(each)
    assert not COMMANDS.keys() & REFUSED.keys()


def test_the_program_is_shown(switch: Switch) -> None:
    tables, actions, of_table, info, ports, about = switch.run(
        "show_tables", "show_actions", "table_show_actions acl", "table_info acl", "show_ports", "switch_info"
    )
    assert "mk=hdr.ipv4.dst(lpm, 32)]" in tables
    assert "implementation=MyIngress.ways" in tables
    assert "[mac(48), port(9)]" in actions
    assert "forward" not in of_table
    assert of_table in info
    assert "running lab" in ports
    assert "device_id                : 3" in about


def invoke(switch: Switch, *arguments: str, **options: Any) -> Any:
    return CliRunner().invoke(weft, ["switch-cli", "--device-id", str(DEVICE), switch.address, *arguments], **options)


def test_weft_switch_cli_runs_files_input_and_words(switch: Switch, tmp_path: Path) -> None:
    file = tmp_path / "s1-commands.txt"
    file.write_text("# routes\ntable_add ipv4_lpm forward 10.0.0.0/8 => 1 2\n\ntable_num_entries ipv4_lpm\n")
    result = invoke(switch, "--file", str(file))
    assert result.output == "Entry has been added with handle 0\n1\n"
    assert invoke(switch, "table_num_entries", "ipv4_lpm").output == "1\n"
    assert invoke(switch, input="table_num_entries acl\n").output == "0\n"
    assert list(switch.send()) == [2]


def test_a_file_says_its_line(switch: Switch, tmp_path: Path) -> None:
    file = tmp_path / "s1-commands.txt"
    file.write_text("show_tables\ntable_add ipv4_lpm drop 1/99 =>\n")
    result = invoke(switch, "--file", str(file))
    assert f"{file}, line 2: table_add: match field hdr.ipv4.dst: prefix length: '99'" in str(result.exception)
    again = invoke(switch, input="show_tables\nfoo\n")
    assert "standard input, line 2: unknown command 'foo'" in str(again.exception)


WIDTHS = st.integers(1, 128)
KINDS = p4i.MatchField


@given(st.integers(1, 128).flatmap(lambda width: st.tuples(st.just(width), st.integers(0, 2**width - 1))))
def test_numbers_are_read_in_every_base(case: tuple[int, int]) -> None:
    width, value = case
    for text in (str(value), hex(value), oct(value), bin(value), f"00{value}"):
        assert parse_value(text, width, "it") == value


@given(st.ip_addresses(v=4), st.ip_addresses(v=6), st.binary(min_size=6, max_size=6))
def test_addresses_are_read_at_their_widths(ipv4: Any, ipv6: Any, mac: bytes) -> None:
    assert parse_value(str(ipv4), 32, "it") == int(ipv4)
    assert parse_value(str(ipv6), 128, "it") == int(ipv6)
    assert parse_value(mac.hex(":"), 48, "it") == int.from_bytes(mac, "big")


@given(st.text(max_size=12), WIDTHS)
def test_any_text_is_a_value_or_refused(text: str, width: int) -> None:
    try:
        value = parse_value(text, width, "it")
    except CommandError:
        return
    assert 0 <= value < 2**width


@given(
    st.sampled_from([KINDS.EXACT, KINDS.LPM, KINDS.TERNARY, KINDS.RANGE, KINDS.OPTIONAL]),
    WIDTHS.flatmap(
        lambda width: st.tuples(
            st.just(width), st.integers(0, 2**width - 1), st.integers(0, 2**width - 1), st.integers(0, width)
        )
    ),
)
def test_what_is_shown_is_read_back(kind: Any, case: tuple[int, int, int, int]) -> None:
    width, first, second, length = case
    low, high = sorted((first, second))
    text = {
        KINDS.EXACT: f"{first}",
        KINDS.LPM: f"{first}/{length}",
        KINDS.TERNARY: f"{first}&&&{second}",
        KINDS.RANGE: f"{low}->{high}",
        KINDS.OPTIONAL: f"{first}",
    }[kind]
    field = p4i.MatchField(id=1, name="key", bitwidth=width, match_type=kind)
    match = parse_match(field, text)
    assert parse_match(field, shown_match(field, match)) == match


@given(
    st.sampled_from([*KINDS.MatchType.values()]),
    st.text(alphabet="0123456789xabf.:/&->", max_size=20),
    WIDTHS,
)
def test_any_text_is_a_key_or_refused(kind: Any, text: str, width: int) -> None:
    field = p4i.MatchField(id=1, name="key", bitwidth=width, match_type=kind)
    try:
        match = parse_match(field, text)
    except CommandError:
        return
    assert match is None or isinstance(match, p4r.FieldMatch)


@given(st.text(max_size=60))
def test_any_line_is_a_command_or_refused(line: str) -> None:
    empty = SimpleNamespace(pipeline=SimpleNamespace(p4info=p4i.P4Info()), device_id=0)
    session = CommandSession(empty)  # type: ignore[arg-type]
    try:
        said = asyncio.run(session.run(line))
    except CommandError:
        return
    assert isinstance(said, str)


def test_rates_of_meters_are_per_microsecond() -> None:
    config = meter_config(["0.5:100", "1:200"])
    assert (config.cir, config.cburst, config.pir, config.pburst) == (500_000, 100, 10**6, 200)


def test_a_prompt_that_is_interrupted_waits_for_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, leave, left = threading.Event(), threading.Event(), threading.Event()

    def waiting(_prompt: str) -> str:
        asked.set()
        leave.wait(10)
        left.set()
        return ""

    async def interrupted() -> None:
        line = asyncio.ensure_future(_line_at_prompt())
        await asyncio.to_thread(asked.wait)
        line.cancel()
        await asyncio.wait([line])

    monkeypatch.setattr("builtins.input", waiting)
    asyncio.run(interrupted())
    assert not left.is_set()
    leave.set()
