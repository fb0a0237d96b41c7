"""A host's counters in the files of its RDMA device, while somebody watches them.

Whoever is connected watches: the files are fresh when the answer comes, a line end, and are written again every
`REFRESH_S`, and once more when the last has gone (docs/spec/endpoint-protocol.md).
"""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

from weft.traffic.answering_socket import AnsweringSocket
from weft.traffic.host import Host
from weft.verbs.counters import DATA_UNIT_BYTES, REFRESH_S, CounterFiles

_MOST_WATCHERS = 256
"""Descriptors are the process's; whoever comes after is answered and watches no further."""


class CountersSocket(AnsweringSocket):
    """Takes those who watch."""

    def __init__(self, path: Path, host: Host, device: Path) -> None:
        """Listen at `path`; `device` is the device's folder (`weft.verbs.sysfs`). Raises OSError."""
        self._host = host
        self._files = CounterFiles(device, len(host.nic_stats()))
        self._watchers: list[socket.socket] = []
        self._next_s = 0.0
        super().__init__(path)

    def serve(self) -> None:
        """Refresh the files for whoever has come."""
        with contextlib.suppress(OSError):
            connection, _ = self._socket.accept()
            connection.setblocking(False)
            self.refresh()
            with contextlib.suppress(OSError):
                connection.send(self._answer(connection))
            if len(self._watchers) < _MOST_WATCHERS:
                self._watchers.append(connection)
            else:
                connection.close()

    def _answer(self, connection: socket.socket) -> bytes:
        return b"\n"

    def seconds_to_next_turn(self) -> float | None:
        """See AnsweringSocket."""
        return max(0.0, self._next_s - time.monotonic()) if self._watchers else None

    def take_turn(self) -> None:
        """Refresh the files if it is time, and forget who has gone."""
        if not self._watchers or time.monotonic() < self._next_s:
            return
        self.refresh()
        self._watchers = [each for each in self._watchers if _is_there(each)]

    def refresh(self) -> None:
        """Write what the host has counted so far."""
        self._next_s = time.monotonic() + REFRESH_S
        traffic, nics = self._host.port_traffic(), self._host.nic_stats()
        ports = {
            number: {
                "port_xmit_data": port["sent_bytes"] // DATA_UNIT_BYTES,
                "port_xmit_packets": port["sent_packets"],
                "port_rcv_data": nic["received_bytes"] // DATA_UNIT_BYTES,
                "port_rcv_packets": nic["received_packets"],
                "port_rcv_errors": sum(nic["dropped"].values()),
            }
            for number, (port, nic) in enumerate(zip(traffic, nics, strict=True), 1)
        }
        self._files.write(ports, self._host.totals() | self._host.device_counts.values())

    def close(self) -> None:
        """See AnsweringSocket."""
        super().close()
        for each in self._watchers:
            each.close()
        self._files.close()


def _is_there(connection: socket.socket) -> bool:
    """Return whether the other end is open; what it sends is not read."""
    try:
        if connection.recv(1 << 10):
            return True
    except BlockingIOError:
        return True
    except OSError:
        pass
    connection.close()
    return False
