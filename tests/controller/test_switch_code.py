"""`weft controller profile`: which code a switch runs, and specialised code on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "switch"))

from router_program import router_document

from weft.controller.cli import controller as command
from weft.controller.switch_code import CODE
from weft.engine import Engine
from weft.switch.backend import ActionCall, LpmMatch, TableEntry
from weft.switch.bmv2json import load_program
from weft.switch.daemon.code_service import METHOD, SERVICE, handler
from weft.switch.daemon.config import PortConfig, SwitchConfig
from weft.switch.daemon.wired_switches import WiredSwitch, WiredSwitches

DEVICE = 3


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, WiredSwitch]]:
    """The address of a server, and its switch."""
    config = SwitchConfig(device_id=DEVICE, name="s1", ports=(PortConfig(port=1, rate_bps=10**9),))
    wired = WiredSwitches(Engine(seed=1), [config])
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers([handler(wired.switches)])
    address = f"unix:{tmp_path}/switch.sock"
    server.add_insecure_port(address)
    server.start()
    yield address, wired.switches[DEVICE]
    server.stop(None)


def profile(address: str, *options: str) -> dict[str, object]:
    result = CliRunner().invoke(
        command, ["--address", address, "--device-id", str(DEVICE), "profile", "--json", *options]
    )
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.output)
    return dict(row)


def test_the_client_calls_the_service() -> None:
    assert f"/{SERVICE}/{METHOD}" == CODE


def test_code_is_specialised_on_request_until_a_write_breaks_it(
    served: tuple[str, WiredSwitch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", "")
    address, wired = served
    wired.switch.load(load_program(router_document()))
    before = profile(address)
    assert (before["code"], before["filled_tables"]) == ("general", 0)
    assert profile(address, "--specialise")["code"] == "specialised"
    wired.switch.table_insert("routes", TableEntry((LpmMatch(0, 0),), ActionCall("route", (1, 2))))
    after = profile(address)
    assert (after["code"], after["filled_tables"], after["generalised"]) == ("general", 1, 1)
    assert after["writes"] == int(str(before["writes"])) + 1


def test_a_switch_without_a_program_is_refused(served: tuple[str, WiredSwitch]) -> None:
    arguments = ["--address", served[0], "--device-id", str(DEVICE), "profile"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 1
    assert "s1" in result.output


def test_other_switches_have_no_such_service(tmp_path: Path) -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    address = f"unix:{tmp_path}/other.sock"
    server.add_insecure_port(address)
    server.start()
    try:
        result = CliRunner().invoke(command, ["--address", address, "profile"])
    finally:
        server.stop(None)
    assert result.exit_code == 3
    assert "own switches" in result.output
