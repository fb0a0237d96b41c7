"""`weft switch`: options as simple_switch_grpc's, bad ones refused, and a switch that serves until interrupted."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from google.protobuf import text_format
from p4runtime_client import P4RuntimeClient
from router_program import router_document, router_p4info

from weft.switch.cli import switch
from weft.switch.cli.foreground import Foreground
from weft.switch.native import NativeSwitch
from weft.switch.p4runtime.service import Server

ROOT = Path(__file__).resolve().parents[2]
START = "from weft.switch.cli import switch; switch()"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "router.json"
    path.write_bytes(router_document())
    return path


@pytest.fixture
def p4info(tmp_path: Path) -> Path:
    path = tmp_path / "router.txtpb"
    path.write_text(text_format.MessageToString(router_p4info()))
    return path


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "a program is missing (or --no-p4)"),
        (["-i", "eth0", "--no-p4"], 2, "'eth0' is not PORT@INTERFACE, such as 1@veth0"),
        (["--no-p4", "--", "--cpu-port", "600"], 2, "600 is not in the range 0<=x<=511"),
        (["--no-p4", "--", "--colour", "red"], 2, "No such option '--colour'"),
        (["--no-p4", "--p4info", "x"], 2, "--p4info describes a program, which is missing"),
        (
            ["/dev/zero", "--", "--grpc-server-addr", "127.0.0.1:0"],
            3,
            "/dev/zero: this is a device, not a regular file",
        ),
        (["/nowhere.json", "--", "--grpc-server-addr", "127.0.0.1:0"], 3, "/nowhere.json: No such file"),
        (
            ["--no-p4", "-i", "1@no-such-if0", "--", "--grpc-server-addr", "127.0.0.1:0"],
            4,
            "weft: packet socket on interface 'no-such-if0': no such interface: No such device\n",
        ),
        (
            ["--no-p4", "-i", "1@a", "-i", "1@b"],
            3,
            "weft: port 1 of switch 'switch-0' is listed twice\n",
        ),
        (
            ["--no-p4", "-i", "1@a", "-i", "2@a"],
            3,
            "weft: interface 'a' of switch 'switch-0' is listed",
        ),
        (
            ["--no-p4", "-i", "1@longer-than-linux-has"],
            3,
            "interface: String should have at most 15 characters",
        ),
        (["--no-p4", "-i", "600@a"], 2, "port 600 of '600@a' is out of range (valid: 0 to 511)"),
        (["--no-p4", "--", "--grpc-server-addr", "127.0.0.1"], 2, "'127.0.0.1' is not HOST:PORT"),
        (
            ["--no-p4", "--", "--grpc-server-addr", "192.0.2.1:9559"],
            4,
            "weft: cannot listen on 192.0.2.1:9559: Cannot assign requested address\n",
        ),
        (["router.p4"], 2, "router.p4 must be compiled first: weft compile router.p4 -o router.json"),
        (
            ["--no-p4", "--pcap", "/nowhere", "--grpc-server-addr", "127.0.0.1:0"],
            3,
            "/nowhere is not a directory",
        ),
    ],
)
def test_bad_usage_is_explained(arguments: list[str], code: int, message: str) -> None:
    result = CliRunner().invoke(switch, arguments)
    assert result.exit_code == code, result.output
    assert message in result.output


def test_a_bad_program_is_refused_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("{}")
    result = CliRunner().invoke(switch, [str(path), "--grpc-server-addr", "127.0.0.1:0"])
    assert result.exit_code == 3
    assert "bad.json: $: attribute 'header_types' is missing" in result.output


def test_controllers_are_answered_once_the_program_is_loaded(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a quick one's entries would be lost with the pipeline that it has set."""
    order: list[str] = []
    for owner, name in ((NativeSwitch, "load"), (Server, "start")):
        call = getattr(owner, name)

        def noted(*arguments: Any, _name: str = name, _call: Any = call) -> Any:
            result = _call(*arguments)
            order.append(_name)
            return result

        monkeypatch.setattr(owner, name, noted)
    monkeypatch.setattr(Foreground, "run", lambda self, _beside: self._daemon.close())
    result = CliRunner().invoke(switch, [str(program), "--grpc-server-addr", "127.0.0.1:0"])
    assert result.exit_code == 0, result.output
    assert order == ["load", "start"]


@pytest.mark.timeout(120)
def test_a_switch_serves_its_program_until_interrupted(program: Path, p4info: Path) -> None:
    command = [
        sys.executable,
        "-c",
        START,
        "--device-id",
        "5",
        "--log-console",
        "-L",
        "info",
        "--p4info",
        str(p4info),
    ]
    command += [str(program), "--", "--grpc-server-addr", "127.0.0.1:0", "--cpu-port", "510"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r"P4Runtime on (127\.0\.0\.1:\d+)", line)
        assert match, line
        client = P4RuntimeClient(match[1], device_id=5)
        client.arbitrate()
        client.send(packet={"payload": b"hello", "metadata": [{"metadata_id": 1, "value": b"\x01\xfe"}]})
        # "hello" is too short for the program's Ethernet header, and passes as payload
        assert client.receive("packet").packet.payload == b"hello"
        client.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
