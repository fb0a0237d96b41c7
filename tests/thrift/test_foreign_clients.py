"""BMv2's and p4-utils' own clients at the port, from clones, with code that Thrift's compiler generates.

WEFT_BMV2 names a clone of p4lang/behavioral-model, WEFT_P4_UTILS one of nsg-ethz/p4-utils, and WEFT_THRIFT a Python
with the package thrift; Debian has the compiler as thrift-compiler.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.thrift.conftest import free_port
from weft.compiler import compile_file
from weft.switch.cli.foreground import Foreground, Options
from weft.switch.daemon.config import DaemonConfig, SwitchConfig
from weft.system.thrift_ports import Served
from weft.thrift.bmv2 import SERVICES
from weft.thrift.declaration import Kind, ListOf, MapOf, Optional, Struct
from weft.thrift.server import ThriftServers

BMV2 = Path(os.environ.get("WEFT_BMV2", ""))
P4_UTILS = Path(os.environ.get("WEFT_P4_UTILS", ""))
PYTHON = os.environ.get("WEFT_THRIFT", "")
ROUTER = Path(__file__).parents[1] / "p4utils" / "course" / "router.p4"
DECLARATIONS = (
    "thrift_src/standard.thrift",
    "thrift_src/simple_pre.thrift",
    "thrift_src/simple_pre_lag.thrift",
    "targets/simple_switch/thrift/simple_switch.thrift",
)
MODULES = {
    "standard": "bm_runtime.standard.Standard",
    "simple_switch": "sswitch_runtime.SimpleSwitch",
    "simple_pre": "bm_runtime.simple_pre.SimplePre",
    "simple_pre_lag": "bm_runtime.simple_pre_lag.SimplePreLAG",
}
pytestmark = [
    pytest.mark.skipif(not os.environ.get("WEFT_BMV2"), reason="WEFT_BMV2 names no clone of p4lang/behavioral-model"),
    pytest.mark.skipif(not PYTHON, reason="WEFT_THRIFT names no Python with the package thrift"),
    pytest.mark.skipif(shutil.which("thrift") is None, reason="Thrift's compiler is not on PATH"),
]


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what the compiler generates."""
    folder = tmp_path_factory.mktemp("generated")
    for declaration in DECLARATIONS:
        subprocess.run(["thrift", "--gen", "py", "--out", folder, BMV2 / declaration], check=True)
    return folder


def run(generated: Path, *arguments: object, typed: str = "") -> str:
    """Run the Python with all modules of the clones, and return what it prints."""
    places = (generated, BMV2 / "tools", BMV2 / "targets" / "simple_switch", P4_UTILS)
    done = subprocess.run(
        [PYTHON, *map(str, arguments)],
        input=typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={"PYTHONPATH": os.pathsep.join(map(str, places))},
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


SIGNATURES = """
import importlib, json, sys
from thrift.Thrift import TType
def kind(wire, more):
    if wire == TType.STRUCT:
        return struct(more[0])
    if wire == TType.LIST:
        return ["list", kind(more[0], more[1])]
    if wire == TType.MAP:
        return ["map", kind(more[0], more[1]), kind(more[2], more[3])]
    return wire
def struct(one):
    fields = [each for each in one.thrift_spec or () if each is not None]
    return [one.__name__, [[each[0], each[2], kind(each[1], each[3])] for each in fields]]
found = {}
for service, name in json.loads(sys.argv[1]).items():
    module = importlib.import_module(name)
    found[service] = calls = {}
    for call in (each for each in dir(module.Iface) if not each.startswith("_")):
        result = [each for each in getattr(module, call + "_result").thrift_spec if each is not None]
        outcome = {each[0]: [each[2], kind(each[1], each[3])] for each in result}
        calls[call] = [struct(getattr(module, call + "_args"))[1], outcome]
print(json.dumps(found))
"""


def shown(kind: Kind) -> object:
    if isinstance(kind, Struct):
        return [kind.name, fields_of(kind)]
    if isinstance(kind, ListOf):
        return ["list", shown(kind.item)]
    return ["map", shown(kind.key), shown(kind.value)] if isinstance(kind, MapOf) else int(kind.wire)


def fields_of(declared: Struct) -> list[object]:
    given = ((name, each.kind if isinstance(each, Optional) else each) for name, each in declared.fields.items())
    return [[number, name, shown(kind)] for number, (name, kind) in enumerate(given, 1)]


def test_the_declaration_is_bmv2s(generated: Path) -> None:
    """Services, calls, arguments, results, exceptions, and all of their numbers and types."""
    theirs = json.loads(run(generated, "-c", SIGNATURES, json.dumps(MODULES)))
    ours = {}
    for service, methods in SERVICES.items():
        ours[service] = calls = {}
        for name, method in methods.items():
            outcome: dict[str, object] = {} if method.result is None else {"0": ["success", shown(method.result)]}
            if method.codes is not None:
                (exception,) = (each[1] for number, each in theirs[service][name][1].items() if number != "0")
                assert exception[1] == [[1, "code", 8]]
                outcome["1"] = ["ouch", exception]
            calls[name] = [fields_of(method.arguments), outcome]
    assert ours == theirs


COMMANDS = """\
table_add ipv4_lpm forward 10.0.1.1/32 => 08:00:00:00:01:11 2
table_add ipv4_lpm forward 10.0.1.1/32 => 08:00:00:00:01:11 2
table_add acl drop 10.0.0.0&&&0xff000000 6->17 0x0800 0x40&&&0xff => 5
table_dump acl
table_dump_entry_from_key ipv4_lpm 10.0.1.1/32
table_delete ipv4_lpm 7
counter_write hits 0 3 300
counter_read hits 0
meter_set_rates police 0 0.00001:10 0.5:20
meter_get_rates police 0
register_write seen 1 65535
register_read seen 1
act_prof_create_member ways forward 08:00:00:00:01:11 2
act_prof_create_group ways
act_prof_add_member_to_group ways 0 0
table_indirect_add_with_group balanced 08:00:00:00:01:12 => 0
table_dump balanced
mc_mgrp_create 1
mc_node_create 7 1 2 | 3
mc_node_associate 1 0
mc_set_lag_membership 3 4 5
mc_dump
mirroring_add 5 2
mirroring_get 5
pvs_clear odd_types
set_queue_depth 64
swap_configs
switch_info
reset_state
table_num_entries acl
"""
SAYS = (
    r"Entry has been added with handle 0",
    r"Invalid table operation \(DUPLICATE_ENTRY\)",
    r"\* ipv4.src +: TERNARY +0a000000 &&& ff000000\n\* ipv4.protocol +: RANGE +06 -> 11\n",
    r"Priority: 5\nAction entry: MyIngress.drop - ",
    r"Dumping entry 0x0\nMatch key:\n\* ipv4.dst +: LPM +0a000101/32\n"
    r"Action entry: MyIngress.forward - 080000000111, 0002",
    r"Invalid table operation \(INVALID_HANDLE\)",
    r"hits\[0\]= \(300 bytes, 3 packets\)",
    r"0: info rate = 1e-05, burst size = 10\n1: info rate = 0.5, burst size = 20",
    r"seen\[1\]= 65535",
    r"Index: group\(0\)",
    r"Dumping group 0\nMembers: \[0\]",
    r"mgrp\(1\)\n  -> \(L1h=0, rid=7\) -> \(ports=\[1, 2\], lags=\[3\]\)",
    r"MirroringSessionConfig\(port=2, mgid=None\)",
    r"Invalid swap operation \(NO_ONGOING_SWAP\)",
    r"device_id +: 3",
    r"RuntimeCmd: 0\n",
)


def test_simple_switch_cli_runs_its_commands(generated: Path, thrift_port: int, compiled: tuple[Path, Path]) -> None:
    command = BMV2 / "targets" / "simple_switch" / "sswitch_CLI.py"
    said = run(generated, command, "--thrift-port", thrift_port, "--json", compiled[0], typed=COMMANDS)
    assert "WARNING" not in said, "it is the switch's program, by its MD5 sum"
    at = 0
    for pattern in SAYS:
        found = re.compile(pattern).search(said, at)
        assert found is not None, f"{pattern} is not in\n{said[at:]}"
        at = found.end()


CONTROLLER = """
import sys
from p4utils.utils.sswitch_thrift_API import SimpleSwitchThriftAPI
switch = SimpleSwitchThriftAPI(int(sys.argv[1]))
MAC = "00:00:00:00:00:01"
assert switch.table_add("routes", "forward", ["10.0.1.0/24"], [MAC, "1"]) == 0
assert switch.table_add("routes", "forward", ["10.0.2.0/24"], [MAC, "2"]) == 1
assert switch.table_add("routes", "forward", ["10.0.2.0/24"], [MAC, "2"]) is None
assert switch.table_add("filters", "drop", ["10.0.0.0&&&0xff000000", "6->17"], [], prio=5) == 0
assert switch.get_handle_from_match("routes", ["10.0.2.0/24"]) == 1
assert switch.table_modify_match("routes", "forward", ["10.0.2.0/24"], [MAC, "3"]) == 1
switch.table_delete_match("routes", ["10.0.1.0/24"])
assert switch.table_num_entries("routes") == 1
switch.register_write("last_source", 3, 77)
switch.register_write("last_source", [4, 6], 5)
assert switch.register_read("last_source") == [0, 0, 0, 77, 5, 5, 0, 0]
switch.counter_write("received", 2, pkts=3, byts=300)
assert switch.counter_read("received", 2) == (300, 3)
switch.meter_set_rates("rates", 1, [(0.00001, 10), (0.5, 20)])
assert switch.meter_get_rates("rates", 1) == [(0.00001, 10), (0.5, 20)]
assert (switch.mc_mgrp_create(1), switch.mc_node_create(0, [1, 2, 3])) == (1, 0)
switch.mc_node_associate(1, 0)
switch.mc_dump()
switch.mirroring_add(7, 2)
switch.set_queue_depth(100)
switch.reset_state()
assert switch.table_num_entries("routes") == 0
print("done")
"""


@pytest.fixture
def router_port(tmp_path: Path) -> Iterator[int]:
    """The Thrift port of a switch with a program that p4-utils can read: without action profiles."""
    result = compile_file(ROUTER)
    program, info = tmp_path / "router.json", tmp_path / "router.txtpb"
    program.write_text(result.json_text())
    info.write_text(result.p4info_text())
    only = SwitchConfig(device_id=0, name="s1", drop_port=511, ports=())
    running = Foreground(DaemonConfig(grpc_address="127.0.0.1:0", switches=(only,)), Options(program, info))
    port = free_port()
    try:
        with ThriftServers({port: Served(running._daemon.server.address, 0)}):
            yield port
    finally:
        running._daemon.close()


@pytest.mark.skipif(not os.environ.get("WEFT_P4_UTILS"), reason="WEFT_P4_UTILS names no clone of nsg-ethz/p4-utils")
def test_p4_utils_own_api_programs_the_switch(generated: Path, router_port: int) -> None:
    said = run(generated, "-c", CONTROLLER, router_port)
    assert "(ports=[1, 2, 3], lags=[])" in said
    assert said.endswith("done\n")
