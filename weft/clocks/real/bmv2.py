"""The reference switch under Mininet: one simple_switch_grpc process for each switch of a fabric.

BMv2 has no bit rates and no byte queues. Its nearest equivalents are a rate in packets per second and a depth in
packets, both set through its Thrift port and derived here from the nominal frame.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weft.clocks.environment import require_bmv2
from weft.quantities.traffic_classes import CLASSES
from weft.system.child_processes import ChildError, WatchedProcess
from weft.topologies import FabricSpec, SwitchSpec
from weft.topologies.addressing import CPU_PORT


@dataclass(frozen=True)
class _Process:
    switch: SwitchSpec
    process: subprocess.Popen[bytes]
    grpc_port: int
    thrift_port: int
    log: Path

    @property
    def watched(self) -> WatchedProcess:
        return WatchedProcess(f"simple_switch_grpc for {self.switch.name}", self.process, self.log)


class Bmv2Switches:
    """All switches of a fabric as simple_switch_grpc processes, without a pipeline until the controller sets it."""

    def __init__(
        self,
        fabric: FabricSpec,
        directory: Path,
        nominal_frame_bytes: int,
        own: Callable[..., None] = lambda *process_ids: None,
    ) -> None:
        """Start them and wait until each answers; `own` is called with each process id as soon as there is one.

        Raises:
            EnvironmentLacksError: BMv2 or its command line is not installed.
            ChildError: a switch ended instead of starting (the message ends with its log), or does not answer.
        """
        program, self._command_line = require_bmv2()
        self._nominal_frame_bytes = nominal_frame_bytes
        self._processes: list[_Process] = []
        try:
            for switch in fabric.switches:
                self._processes.append(_start(program, switch, directory))
                own(self._processes[-1].process.pid)
            for each in self._processes:
                _wait_until_serving(each)
                self._set_queues(each)
        except BaseException:
            self.close()
            raise

    @property
    def watched(self) -> list[WatchedProcess]:
        """The processes, for those that need them."""
        return [each.watched for each in self._processes]

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        """P4Runtime address and device id of each switch, by name."""
        return {each.switch.name: (f"127.0.0.1:{each.grpc_port}", each.switch.device_id) for each in self._processes}

    def _set_queues(self, each: _Process) -> None:
        lines = []
        for port in each.switch.ports:
            if not port.is_cabled:
                continue
            packets_per_second = max(1, port.link.rate_bps // (8 * self._nominal_frame_bytes))
            depth_packets = max(1, port.link.queue_capacity_bytes // self._nominal_frame_bytes)
            lines.append(f"set_queue_rate {packets_per_second} {port.number}")
            lines.append(f"set_queue_depth {depth_packets} {port.number}")
        try:
            result = subprocess.run(
                [self._command_line, "--thrift-port", str(each.thrift_port)],
                input="\n".join(lines) + "\n",
                text=True,
                capture_output=True,
                check=False,
                timeout=30,
            )
        except subprocess.TimeoutExpired:
            raise ChildError(f"simple_switch_CLI for {each.switch.name} did not end within 30 s") from None
        if result.returncode or "Error" in result.stdout:
            raise ChildError(f"simple_switch_CLI for {each.switch.name}: {result.stdout[-500:]}{result.stderr[-500:]}")

    def close(self) -> None:
        """End all of them."""
        processes = [each.process for each in self._processes]
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(program: str, switch: SwitchSpec, directory: Path) -> _Process:
    grpc_port, thrift_port = _free_tcp_ports(2)
    command = [program, "--no-p4", "--device-id", str(switch.device_id)]
    for port in switch.ports:
        if port.is_cabled:
            command += ["-i", f"{port.number}@{port.interface}"]
    command += ["--thrift-port", str(thrift_port), "--log-file", str(directory / switch.name)]
    command += ["--log-level", "warn", "--"]
    command += ["--grpc-server-addr", f"127.0.0.1:{grpc_port}", "--cpu-port", str(CPU_PORT)]
    # One queue by default, and a packet of any class but 0 is dropped then.
    command += ["--priority-queues", str(CLASSES)]
    log_path = directory / f"{switch.name}.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return _Process(switch, process, grpc_port, thrift_port, log_path)


def _free_tcp_ports(count: int) -> list[int]:
    """Return different ports of the loopback that nothing listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_until_serving(each: _Process, patience_s: float = 20.0) -> None:
    deadline = time.monotonic() + patience_s
    for port in (each.grpc_port, each.thrift_port):
        while True:
            each.watched.require_alive()
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise ChildError(
                        f"simple_switch_grpc for {each.switch.name} does not answer on port {port}"
                    ) from None
                time.sleep(0.02)  # nothing reports that another process has begun to listen
