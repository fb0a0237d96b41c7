"""Makes this folder's helper modules importable, and offers a running P4Runtime server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from p4runtime_client import P4RuntimeClient, connected

from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch, Output
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.service import Server

CPU_PORT = 510


class CompiledSwitch(NativeSwitch):
    """The native switch, its `process` as the oracle's."""

    def process(self, port: int, data: bytes) -> list[Output]:  # type: ignore[override]
        return [Output(*output) for output in super().process(port, data)]


@pytest.fixture(params=["oracle", "native"])
def switches(request: pytest.FixtureRequest) -> dict[int, OracleSwitch | CompiledSwitch]:
    """Two switches; a test of what only the oracle has asks for it by `oracle_only`."""
    make = OracleSwitch if request.param == "oracle" else CompiledSwitch
    return {1: make(cpu_port=CPU_PORT), 2: make(cpu_port=CPU_PORT)}


@pytest.fixture
def server(switches: dict[int, OracleSwitch | CompiledSwitch]) -> Iterator[Server]:
    devices = {number: Device(number, switch, CPU_PORT) for number, switch in switches.items()}
    running = Server(devices, "127.0.0.1:0")
    running.start()
    yield running
    running.stop()


@pytest.fixture
def client(server: Server) -> Iterator[P4RuntimeClient]:
    """A primary controller of device 1, which runs the router."""
    made = connected(server.address)
    yield made
    made.close()
