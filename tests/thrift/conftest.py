"""A switch with a program that has something for every call, and its Thrift port."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.compiler import compile_file
from weft.switch.cli.foreground import Foreground, Options
from weft.switch.daemon.config import DaemonConfig, SwitchConfig
from weft.system.thrift_ports import Served
from weft.thrift.server import ThriftServers

PROGRAM = Path(__file__).parents[1] / "controller" / "switch_cli" / "everything.p4"
DEVICE = 3


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The program and its P4Info, as files."""
    result = compile_file(PROGRAM)
    folder = tmp_path_factory.mktemp("everything")
    program, info = folder / "everything.json", folder / "everything.txtpb"
    program.write_text(result.json_text())
    info.write_text(result.p4info_text())
    return program, info


@pytest.fixture
def running(compiled: tuple[Path, Path]) -> Iterator[Served]:
    """Where the switch serves P4Runtime."""
    only = SwitchConfig(device_id=DEVICE, name="s1", drop_port=511, ports=())
    switch = Foreground(DaemonConfig(grpc_address="127.0.0.1:0", switches=(only,)), Options(*compiled))
    try:
        yield Served(switch._daemon.server.address, DEVICE)
    finally:
        switch._daemon.close()


@pytest.fixture
def thrift_port(running: Served) -> Iterator[int]:
    """The switch's Thrift port."""
    port = free_port()
    with ThriftServers({port: running}) as servers:
        assert not servers.failures
        yield port


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
