"""What is put between the sender and the sink: bare forwarders, `weft switch`, the lab's daemon, BMv2."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fabric_setup import programmed
from load import SWITCH_CORE
from scheduling import pinned

from weft.controller.grpc_targets import GrpcTarget, embedded_targets
from weft.scenario.program import Program
from weft.system.child_processes import JsonLinesChild, python_environment, python_module
from weft.topologies import FabricSpec, PortSpec, SwitchSpec
from weft.topologies.addressing import CPU_PORT

BMV2 = "simple_switch_grpc"
FIRST_GRPC_PORT, FIRST_THRIFT_PORT = 9559, 9090
START_PATIENCE_S = 30.0

ENGINE_FORWARDER = """
import sys
from weft.engine import Engine, Link, PacketSocket, TransmitPort
engine = Engine.real_clock()
link = Link(engine)
link.connect(PacketSocket(engine, sys.argv[2]))
PacketSocket(engine, sys.argv[1]).connect(TransmitPort(engine, link))
engine.start()
print("ready", flush=True)
sys.stdin.read()
engine.stop()
"""
"""The engine's sockets, port and link without a program."""


def has_bmv2() -> bool:
    """Whether simple_switch_grpc is on PATH."""
    return shutil.which(BMV2) is not None


@contextmanager
def forwarder(*command: str, realtime: bool) -> Iterator[None]:
    """A process that says `ready`, and ends with its standard input."""
    process = subprocess.Popen(
        [*pinned(SWITCH_CORE, realtime=realtime), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=python_environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{command[0]} did not start")
        yield
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def engine_forwarder(receiving: str, sending: str) -> list[str]:
    """The command of the engine's forwarder without a program."""
    return [sys.executable, "-c", ENGINE_FORWARDER, receiving, sending]


def weft_command(spec: SwitchSpec, address: str, program: list[str]) -> list[str]:
    """`weft switch` on the switch's interfaces, with this program."""
    command = [sys.executable, "-m", "weft", "switch", *program, "--log-level", "warn"]
    return [*command, "--device-id", str(spec.device_id), *_interfaces(spec), "--grpc-server-addr", address]


def bmv2_command(spec: SwitchSpec, address: str, program: list[str], thrift_port: int) -> list[str]:
    """simple_switch_grpc on the switch's interfaces, with this program."""
    command = [BMV2, *program, "--device-id", str(spec.device_id), *_interfaces(spec)]
    command += ["--thrift-port", str(thrift_port), "--log-level", "off", "--"]
    command += ["--grpc-server-addr", address, "--cpu-port", str(CPU_PORT), "--priority-queues", "8"]
    return command


@contextmanager
def weft_switch(fabric: FabricSpec, program: Program, *, realtime: bool) -> Iterator[None]:
    """`weft switch` as the only switch of a fabric, programmed."""
    (spec,) = fabric.switches
    address = f"127.0.0.1:{FIRST_GRPC_PORT}"
    command = weft_command(spec, address, ["--no-p4"])
    with (
        _servers([command], realtime=realtime),
        programmed(fabric, program, embedded_targets(fabric, address)),
    ):
        yield


@contextmanager
def bmv2_switches(fabric: FabricSpec, program: Program, *, realtime: bool) -> Iterator[None]:
    """A simple_switch_grpc for every switch of a fabric, all on the switch's core, programmed."""
    commands, targets = [], {}
    for number, spec in enumerate(fabric.switches):
        address = f"127.0.0.1:{FIRST_GRPC_PORT + number}"
        commands.append(bmv2_command(spec, address, ["--no-p4"], FIRST_THRIFT_PORT + number))
        targets[spec.name] = GrpcTarget(address, spec.device_id)
    with (
        _servers(commands, realtime=realtime, many_threads=True),
        programmed(fabric, program, targets, "bmv2"),
    ):
        yield


@contextmanager
def router(fabric: FabricSpec, program: Program, *, bmv2: bool, realtime: bool) -> Iterator[None]:
    """A switch with a program that brings its entries, in place of the fabric's only one."""
    (spec,) = fabric.switches
    address = f"127.0.0.1:{FIRST_GRPC_PORT}"
    loaded = [str(program.json)]
    command = bmv2_command(spec, address, loaded, FIRST_THRIFT_PORT) if bmv2 else weft_command(spec, address, loaded)
    with _servers([command], realtime=realtime, many_threads=bmv2):
        yield


def _interfaces(spec: SwitchSpec) -> list[str]:
    return [word for port in spec.ports for word in ("-i", f"{port.number}@{port.interface}")]


@contextmanager
def _servers(commands: list[list[str]], *, realtime: bool, many_threads: bool = False) -> Iterator[None]:
    """One process of each command, the n-th serving P4Runtime on FIRST_GRPC_PORT + n."""
    with contextlib.ExitStack() as stack:
        for number, command in enumerate(commands):
            process = subprocess.Popen(
                [*pinned(SWITCH_CORE, realtime=realtime, many_threads=many_threads), *command],
                stdout=subprocess.DEVNULL,
                env=python_environment(),
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            _wait_until_serving(FIRST_GRPC_PORT + number, process)
        yield


def _wait_until_serving(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + START_PATIENCE_S
    while True:
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        if process.poll() is not None or time.monotonic() > deadline_s:
            raise RuntimeError(f"{process.args!r} does not serve on port {port}")
        time.sleep(0.05)


@contextmanager
def weft_daemon(fabric: FabricSpec, program: Program, folder: Path, *, realtime: bool) -> Iterator[JsonLinesChild]:
    """The process that runs all switches of a lab, programmed and with internal links; it reports counters."""
    config_path, log_path = folder / "switches.json", folder / "switches.log"
    config_path.write_text(json.dumps(_daemon_config(fabric)))
    with log_path.open("w") as log:
        process = subprocess.Popen(
            [
                *pinned(SWITCH_CORE, realtime=realtime),
                *python_module("weft.switch.daemon"),
                "--config",
                str(config_path),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=python_environment(),
        )
    child = JsonLinesChild("the switch daemon", process, log_path)
    try:
        address = str(child.read_answer(timeout_s=START_PATIENCE_S)["grpc_address"])
        with programmed(fabric, program, embedded_targets(fabric, address)):
            yield child
    finally:
        child.close()


def _daemon_config(fabric: FabricSpec) -> dict[str, Any]:
    """Unpaced, without delay, undilated."""
    devices = {spec.name: spec.device_id for spec in fabric.switches}
    return {
        "grpc_address": "127.0.0.1:0",
        "switches": [
            {
                "device_id": spec.device_id,
                "name": spec.name,
                "cpu_port": CPU_PORT,
                "ports": [_daemon_port(port) for port in spec.ports],
            }
            for spec in fabric.switches
        ],
        "internal_links": [
            [devices[link.a.node], link.a.port, devices[link.b.node], link.b.port]
            for link in fabric.links
            if link.a.node in devices and link.b.node in devices
        ],
    }


def _daemon_port(port: PortSpec) -> dict[str, Any]:
    return {"port": port.number} | ({"interface": port.interface} if port.peer_is_host else {})
