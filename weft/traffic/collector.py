"""A host that collects telemetry reports: it keeps the datagrams of a UDP port, with their times."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from weft.engine import IpStack, _core

MAX_DATAGRAMS = 1_000_000
MAX_BYTES = 64 << 20
"""Largest sum of all payloads. The first datagram beyond a bound and all later ones are only counted."""
_MAX_DATAGRAM_BYTES = 65536
_POLL_S = 0.1
_RECEIVE_BUFFER_BYTES = 8 << 20


class Collector(Protocol):
    """Keeps datagrams from when it is made."""

    def entries(self) -> list[tuple[int, bytes]]:
        """Return the emulated time in ps and the payload of each, in order of arrival."""

    def not_kept(self) -> int:
        """Return how many were beyond what is kept."""

    def close(self) -> None:
        """Keep no more."""


class StackCollector:
    """Collects at a host's own IP stack. Raises ValueError if the port is taken."""

    def __init__(self, stack: IpStack, port: int) -> None:
        self._log = _core.DatagramLog(stack, port, most_datagrams=MAX_DATAGRAMS, most_bytes=MAX_BYTES)

    def entries(self) -> list[tuple[int, bytes]]:
        """See Collector."""
        return self._log.entries()

    def not_kept(self) -> int:
        """See Collector."""
        return self._log.not_kept()

    def close(self) -> None:
        """Do nothing: the log ends with the host's engine."""


class KernelCollector:
    """Collects at a socket of the kernel, in a thread. Raises OSError if the port is taken.

    `now_ps` returns the emulated time; a datagram has the time at which the thread read it.
    """

    def __init__(self, port: int, now_ps: Callable[[], int]) -> None:
        self._now_ps = now_ps
        self._entries: list[tuple[int, bytes]] = []
        self._left_bytes = MAX_BYTES
        self._not_kept = 0
        self._ends = threading.Event()
        # Takes IPv4, too, as mapped addresses.
        self._socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        try:
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
            self._socket.settimeout(_POLL_S)
            self._socket.bind(("::", port))
        except OSError:
            self._socket.close()
            raise
        self._thread = threading.Thread(target=self._receive, name="collector", daemon=True)
        self._thread.start()

    def entries(self) -> list[tuple[int, bytes]]:
        """See Collector."""
        return self._entries[:]

    def not_kept(self) -> int:
        """See Collector."""
        return self._not_kept

    def close(self) -> None:
        """See Collector."""
        self._ends.set()
        self._thread.join()
        self._socket.close()

    def _receive(self) -> None:
        while not self._ends.is_set():
            try:
                data = self._socket.recv(_MAX_DATAGRAM_BYTES)
            except TimeoutError:
                continue
            if not self._not_kept and len(self._entries) < MAX_DATAGRAMS and len(data) <= self._left_bytes:
                self._left_bytes -= len(data)
                self._entries.append((self._now_ps(), data))
            else:
                self._not_kept += 1


def save(entries: list[tuple[int, bytes]], path: Path) -> None:
    """Write datagrams to a NumPy archive. Raises OSError."""
    np.savez(
        path,
        time_ps=np.array([time for time, _ in entries], np.int64),
        ends=np.cumsum([len(data) for _, data in entries], dtype=np.int64),
        bytes=np.frombuffer(b"".join(data for _, data in entries), np.uint8),
    )


def read(path: Path) -> list[tuple[int, bytes]]:
    """Return the datagrams that `save` wrote."""
    with np.load(path) as found:
        times, ends, data = found["time_ps"], found["ends"], found["bytes"].tobytes()
    begins = [0, *ends[:-1]] if len(ends) else []
    return [(int(time), data[begin:end]) for time, begin, end in zip(times, begins, ends, strict=True)]
