"""Makes this folder's helper modules importable, and offers a running P4Runtime server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from p4runtime_client import P4RuntimeClient, connected

from switch.oracle import OracleSwitch
from switch.p4runtime.device import Device
from switch.p4runtime.service import Server

CPU_PORT = 510


@pytest.fixture
def switches() -> dict[int, OracleSwitch]:
    return {1: OracleSwitch(CPU_PORT), 2: OracleSwitch(CPU_PORT)}


@pytest.fixture
def server(switches: dict[int, OracleSwitch]) -> Iterator[Server]:
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
