"""behavioral-model's simple_switch as a subject of tests: packets through files, control through its CLI.

No root and no interfaces are needed: the switch reads and writes packet captures, the inputs being pipes.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

from scapy.utils import RawPcapReader, RawPcapWriter

AVAILABLE = all(shutil.which(name) for name in ("simple_switch", "simple_switch_CLI"))
START_TIMEOUT_S = 20.0
QUIET_POLLS = 30
"""Polls, 10 ms apart, without a new line in the log after which the switch counts as idle."""
LINK_TYPE_ETHERNET = 1
PACKETS_PER_S = 1000
QUEUE_DEPTH_PACKETS = 4096
"""Enough for whatever copies a program makes."""


class ReferenceSwitch:
    """A running simple_switch with ports 0 to `port_count` - 1, in `directory`."""

    def __init__(self, json_path: Path, directory: Path, port_count: int = 8) -> None:
        self._directory = directory
        self._ports = range(port_count)
        self._log_path = directory / "log.txt"
        for port in self._ports:
            os.mkfifo(self._file(port, "in"))
        self._thrift_port = _free_port()
        interfaces = [word for port in self._ports for word in ("-i", f"{port}@port{port}")]
        identity = ["--device-id", str(self._thrift_port), "--thrift-port", str(self._thrift_port)]
        notifications = ["--notifications-addr", f"ipc://{directory}/notifications.ipc"]
        command = ["simple_switch", *identity, *notifications, "--use-files", "0", *interfaces]
        self._process = subprocess.Popen(
            [*command, "--log-file", "log", "--log-flush", str(json_path), "--", "--priority-queues", "8"],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._writers = {port: self._open(port) for port in self._ports}
        self._wait_for_thrift()
        self.command(f"set_queue_depth {QUEUE_DEPTH_PACKETS}")

    def _open(self, port: int) -> RawPcapWriter:
        # The switch opens one pipe after the other and reads the file header before it goes on.
        file: IO[bytes] = self._file(port, "in").open("wb")
        writer = RawPcapWriter(file, linktype=LINK_TYPE_ETHERNET, sync=True)
        writer.write_header(b"")
        return writer

    def _file(self, port: int, direction: str) -> Path:
        return self._directory / f"port{port}_{direction}.pcap"

    def _wait_for_thrift(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._thrift_port)) == 0:
                    return
            assert self._process.poll() is None, f"simple_switch ended:\n{self.log()}"
            time.sleep(0.05)
        raise TimeoutError("simple_switch did not open its control port")

    def command(self, *lines: str) -> str:
        """Run lines of simple_switch_CLI; returns what it printed. AssertionError if one was wrong."""
        done = subprocess.run(
            ["simple_switch_CLI", "--thrift-port", str(self._thrift_port)],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        wrong = re.search(r"(?mi)^.*(error|invalid|unknown syntax).*$", done.stdout + done.stderr)
        assert wrong is None, f"{wrong.group(0)}\nin {lines}"
        return done.stdout

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """Packets and bytes of a cell of a counter."""
        found = re.search(r"\((\d+) bytes, (\d+) packets\)", self.command(f"counter_read {name} {index}"))
        assert found is not None
        return int(found.group(2)), int(found.group(1))

    def register(self, name: str) -> list[int]:
        """All cells of a register."""
        printed = self.command(f"register_read {name}")
        return [int(cell) for cell in printed.split("=", 1)[1].split("\n", 1)[0].split(",")]

    def log(self) -> str:
        """The switch's log as far as it is written."""
        try:
            return self._log_path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def send(self, packets: Iterable[tuple[int, bytes]]) -> None:
        """Let packets in by their ports, in this order, and wait until the switch is idle. Possible once."""
        for number, (port, data) in enumerate(packets):
            # The switch merges the files by time stamp, and keeps the distances.
            seconds, rest = divmod(number, PACKETS_PER_S)
            microseconds = rest * 10**6 // PACKETS_PER_S
            self._writers[port].write_packet(data, sec=seconds, usec=microseconds)
        # It needs to see every file's next packet or end before it takes the first one.
        for writer in self._writers.values():
            writer.close()
        self._settle()

    def _wants_to_run(self) -> bool:
        """Whether a thread of the switch runs or waits for a core, which a busy machine may withhold for long."""
        states = Path(f"/proc/{self._process.pid}/task").glob("*/stat")
        return any(each.read_text().rpartition(")")[2].split()[0] in "RD" for each in states)

    def _settle(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        quiet_polls, size = 0, -1
        while quiet_polls < QUIET_POLLS and time.monotonic() < deadline:
            try:
                now = self._log_path.stat().st_size
            except FileNotFoundError:  # not begun yet, or the switch moves a full log away just now
                now = -1
            quiet_polls = quiet_polls + 1 if now == size >= 0 and not self._wants_to_run() else 0
            size = now
            time.sleep(0.01)

    def stop(self) -> dict[int, list[bytes]]:
        """End the switch; what left it, by port."""
        self._end()
        outputs: dict[int, list[bytes]] = {}
        for port in self._ports:
            path = self._file(port, "out")
            if path.stat().st_size == 0:  # not even the file header, before the first packet
                continue
            with RawPcapReader(str(path)) as reader:
                packets = [data for data, _ in reader]
            if packets:
                outputs[port] = packets
        return outputs

    def __enter__(self) -> ReferenceSwitch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._process.terminate()
        self._process.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
