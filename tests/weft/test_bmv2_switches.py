"""How simple_switch_grpc is started and its queues configured, with stand-ins for BMv2's two programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.refusals import refused
from weft import topologies
from weft.clocks.real.bmv2 import Bmv2Switches
from weft.errors import EnvironmentLacksError
from weft.quantities.traffic_classes import CLASSES
from weft.system.child_processes import ChildError

FABRIC = topologies.leaf_spine(
    planes=1, leaves=1, spines=0, hosts_per_leaf=2, host_rate_bps=10_000_000, queue_capacity_bytes=64_000
)
SWITCH = """
import socket, sys
listening = []
for option in ("--grpc-server-addr", "--thrift-port"):
    port = sys.argv[sys.argv.index(option) + 1].rpartition(":")[2]
    listening.append(socket.create_server(("127.0.0.1", int(port))))
while True:
    for each in listening:
        each.accept()[0].close()
"""
COMMAND_LINE = """
import pathlib, sys
pathlib.Path(__file__).with_name("commands.txt").write_text(sys.stdin.read())
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that puts the stand-ins on PATH; a test may give their scripts."""

    def put(switch: str = SWITCH, command_line: str = COMMAND_LINE) -> Path:
        for name, text in (("simple_switch_grpc", switch), ("simple_switch_CLI", command_line)):
            path = tmp_path / name
            path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
            path.chmod(0o755)
        return tmp_path

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return put


def command_line_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")


def test_switches_get_their_ports_and_queues_in_packets(install):
    directory = install()
    owned = []
    switches = Bmv2Switches(FABRIC, directory, nominal_frame_bytes=1000, own=owned.append)
    try:
        ((name, (address, device_id)),) = switches.addresses.items()
        (spec,) = FABRIC.switches
        assert (name, device_id) == (spec.name, spec.device_id)
        words = command_line_of(owned[0])
        assert words[words.index("--grpc-server-addr") + 1] == address
        assert words[words.index("--priority-queues") + 1] == str(CLASSES)
        assert [words[place + 1] for place, word in enumerate(words) if word == "-i"] == [
            f"{port.number}@{port.interface}" for port in spec.ports
        ]
        # 10 Mb/s are 1,250 frames of 1,000 B a second, 64,000 B are 64 of them.
        assert (directory / "commands.txt").read_text().splitlines() == [
            "set_queue_rate 1250 1",
            "set_queue_depth 64 1",
            "set_queue_rate 1250 2",
            "set_queue_depth 64 2",
        ]
    finally:
        switches.close()
    assert not Path(f"/proc/{owned[0]}").exists()


def test_a_switch_that_does_not_start_says_why(install):
    directory = install(switch="print('cannot open p0l0-eth1'); raise SystemExit(3)")
    owned = []
    with refused(ChildError, problem="p0l0 ended with status 3; its"):
        Bmv2Switches(FABRIC, directory, 1000, own=owned.append)
    assert not Path(f"/proc/{owned[0]}").exists()


@pytest.mark.parametrize("failure", ["raise SystemExit('no thrift')", "print('Error: Invalid port')"])
def test_queues_that_are_refused_end_the_switches(install, failure):
    directory = install(command_line=failure)
    owned = []
    with pytest.raises(ChildError, match=r"p0l0.*(no thrift|Invalid port)"):
        Bmv2Switches(FABRIC, directory, 1000, own=owned.append)
    assert not Path(f"/proc/{owned[0]}").exists()


def test_a_command_line_that_hangs_is_given_up(install, monkeypatch):
    directory = install()

    def never_ends(*arguments, timeout, **options):
        raise subprocess.TimeoutExpired(arguments, timeout)

    monkeypatch.setattr(subprocess, "run", never_ends)
    with refused(ChildError, problem="did not end within 30 s"):
        Bmv2Switches(FABRIC, directory, 1000)


def test_missing_programs_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(EnvironmentLacksError, problem="simple_switch_grpc"):
        Bmv2Switches(FABRIC, tmp_path, 1000)
