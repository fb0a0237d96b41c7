"""`weft switch --thrift-port`."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.thrift.client import Client
from tests.thrift.conftest import DEVICE, free_port
from weft.cli import weft
from weft.errors import EnvironmentLacksError
from weft.switch.cli import switch as without_thrift
from weft.system.thrift_ports import Served, find, folder
from weft.thrift.commands import switch

START = [sys.executable, "-c", "from weft.thrift.commands import switch; switch(prog_name='weft-switch')"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_STATE_FILE", str(tmp_path / "lab.json"))


def arguments(port: int, compiled: tuple[Path, Path]) -> list[str]:
    program, info = map(str, compiled)
    given = [program, "--p4info", info, "--device-id", str(DEVICE), "--thrift-port", str(port)]
    return [*given, "--", "--grpc-server-addr", "127.0.0.1:0"]


def test_the_command_serves_its_thrift_port(compiled: tuple[Path, Path]) -> None:
    port = free_port()
    process = subprocess.Popen([*START, *arguments(port, compiled)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = next(line for line in process.stderr if "Thrift on" in line)
        assert re.search(rf"Thrift on 127\.0\.0\.1:{port}$", said)
        client = Client(port)
        assert client.call("standard:bm_mgmt_get_info")["device_id"] == DEVICE
        client.socket.close()
        served = find(port)
        assert served.device_id == DEVICE
        assert not served.address.endswith(":0"), "the port that the switch has got"
    finally:
        process.terminate()
        process.stderr.close()
        assert process.wait(30) == 0
    with pytest.raises(EnvironmentLacksError, match="no switch with the Thrift port"):
        find(port)


def test_simple_switch_cli_finds_the_switch(compiled: tuple[Path, Path]) -> None:
    port = free_port()
    process = subprocess.Popen([*START, *arguments(port, compiled)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        assert any("Thrift on" in line for line in process.stderr)
        command = [sys.executable, "-m", "weft.shims.simple_switch_cli", "--thrift-port", str(port)]
        done = subprocess.run(command, input="show_tables\n", capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert "MyIngress.ipv4_lpm" in done.stdout
    finally:
        process.terminate()
        process.stderr.close()
        process.wait(30)


def test_a_switch_that_cannot_be_announced_is_served(running: Served, capsys: pytest.CaptureFixture[str]) -> None:
    folder().mkdir()
    folder().chmod(0o777)
    port = free_port()
    with switch.thrift(port, running.address, DEVICE, False):
        client = Client(port)
        assert client.call("standard:bm_mgmt_get_info")["device_id"] == DEVICE
        client.socket.close()
    assert "simple_switch_CLI will not find this switch" in capsys.readouterr().err


def test_a_port_that_another_process_has_ends_the_start(thrift_port: int, compiled: tuple[Path, Path]) -> None:
    result = CliRunner().invoke(weft, ["switch", *arguments(thrift_port, compiled)])
    assert result.exit_code == 4, result.output
    assert f"Thrift port {thrift_port}: Address already in use" in result.output
    with pytest.raises(EnvironmentLacksError):
        find(thrift_port)


@pytest.mark.parametrize("port", ["0", "65536", "x"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    result = CliRunner().invoke(switch, ["--no-p4", "--thrift-port", port])
    assert result.exit_code == 2
    assert "--thrift-port" in result.output


def test_a_switch_that_wants_certificates_lets_none_in_without(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), switch.thrift(free_port(), "127.0.0.1:1", 0, True):
        assert "clients without a certificate" in caplog.text


def test_the_command_without_thrift_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), without_thrift.thrift(free_port(), "127.0.0.1:1", 0, False):
        assert "serves P4Runtime alone" in caplog.text
