"""The reference switch under Mininet: one simple_switch_grpc process for each switch of a fabric.

BMv2 has no bit rates and no byte queues. Its nearest are a rate in packets per second and a depth in packets, both
set through its Thrift port; they are derived here from the nominal frame.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

from topologies import FabricSpec, SwitchSpec
from weft.child import ChildError
from weft.environment import require_bmv2
from weft.errors import EnvironmentLacksError

CPU_PORT = 510
PRIORITY_CLASSES = 8
FIRST_GRPC_PORT = 50051
FIRST_THRIFT_PORT = 39090


class Bmv2Switches:
    """All switches of a fabric as simple_switch_grpc processes, without a pipeline until the controller sets it."""

    def __init__(self, fabric: FabricSpec, directory: Path, nominal_frame_bytes: int) -> None:
        """Start them and wait until each answers gRPC.

        Raises:
            EnvironmentLacksError: BMv2 or its command line is not installed.
            ChildError: a switch ended instead of starting; the message ends with its log.
        """
        program = require_bmv2()
        command_line = shutil.which("simple_switch_CLI")
        if command_line is None:
            raise EnvironmentLacksError(
                "simple_switch_CLI is not on PATH; it comes with BMv2 built with Thrift"
            )
        self.addresses: dict[str, tuple[str, int]] = {}
        self.processes: list[subprocess.Popen[bytes]] = []
        self._nominal_frame_bytes = nominal_frame_bytes
        try:
            for index, switch in enumerate(fabric.switches):
                self._start(program, switch, directory, index)
            for index, switch in enumerate(fabric.switches):
                self._wait_until_serving(index, switch, directory)
                self._set_queues(command_line, switch, index)
        except BaseException:
            self.close()
            raise

    def _start(self, program: str, switch: SwitchSpec, directory: Path, index: int) -> None:
        address = f"127.0.0.1:{FIRST_GRPC_PORT + index}"
        command = [program, "--no-p4", "--device-id", str(switch.device_id)]
        for port in switch.ports:
            command += ["-i", f"{port.number}@{port.interface}"]
        command += [
            "--thrift-port",
            str(FIRST_THRIFT_PORT + index),
            "--log-file",
            str(directory / switch.name),
        ]
        command += ["--log-level", "warn", "--", "--grpc-server-addr", address, "--cpu-port", str(CPU_PORT)]
        # One queue by default, and a packet of any class but 0 is dropped then.
        command += ["--priority-queues", str(PRIORITY_CLASSES)]
        with (directory / f"{switch.name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        self.addresses[switch.name] = (address, switch.device_id)

    def _wait_until_serving(
        self, index: int, switch: SwitchSpec, directory: Path, patience_s: float = 20.0
    ) -> None:
        deadline = time.monotonic() + patience_s
        for port in (FIRST_GRPC_PORT + index, FIRST_THRIFT_PORT + index):
            while True:
                status = self.processes[index].poll()
                if status is not None:
                    log = (directory / f"{switch.name}.log").read_text(encoding="utf-8", errors="replace")
                    raise ChildError(
                        f"simple_switch_grpc for {switch.name} ended with status {status}: {log[-2000:]}"
                    )
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise ChildError(
                            f"simple_switch_grpc for {switch.name} does not answer on port {port}"
                        ) from None
                    time.sleep(0.02)

    def _set_queues(self, command_line: str, switch: SwitchSpec, index: int) -> None:
        lines = []
        for port in switch.ports:
            packets_per_second = max(1, port.link.rate_bps // (8 * self._nominal_frame_bytes))
            depth_packets = max(1, port.link.queue_capacity_bytes // self._nominal_frame_bytes)
            lines.append(f"set_queue_rate {packets_per_second} {port.number}")
            lines.append(f"set_queue_depth {depth_packets} {port.number}")
        result = subprocess.run(
            [command_line, "--thrift-port", str(FIRST_THRIFT_PORT + index)],
            input="\n".join(lines) + "\n",
            text=True,
            capture_output=True,
            check=False,
            timeout=30,
        )
        if result.returncode or "Error" in result.stdout:
            raise ChildError(
                f"simple_switch_CLI for {switch.name}: {result.stdout[-500:]}{result.stderr[-500:]}"
            )

    def close(self) -> None:
        """End all of them."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
