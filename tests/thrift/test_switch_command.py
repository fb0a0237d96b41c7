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
from weft.switch.cli import switch as without_thrift
from weft.thrift.commands import switch

START = [sys.executable, "-c", "from weft.thrift.commands import switch; switch(prog_name='weft-switch')"]


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
    finally:
        process.terminate()
        process.stderr.close()
        assert process.wait(30) == 0


def test_a_port_that_another_process_has_ends_the_start(thrift_port: int, compiled: tuple[Path, Path]) -> None:
    result = CliRunner().invoke(weft, ["switch", *arguments(thrift_port, compiled)])
    assert result.exit_code == 4, result.output
    assert f"Thrift port {thrift_port}: Address already in use" in result.output


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
