"""What a host of a lab does with its kernel's TCP, for bench_tcp_linux.py; run inside the host's network namespace.

    kernel_tcp_host.py receive PORT
    kernel_tcp_host.py send ADDRESS PORT CONTROL DSCP BEGIN_NS DURATION_NS SAMPLE_NS

A receiver prints a line once it listens, and one with what it got. A sender opens its connection at BEGIN_NS of
CLOCK_MONOTONIC, sends as much as goes for so long, and prints what TCP_INFO said meanwhile. Lines are JSON.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

_CHUNK_BYTES = 1 << 16
_SEND_BUFFER_BYTES = 1 << 20
_INFO_BYTES = 256
_ADDRESS_FAMILY = socket.AF_INET
# Offsets in struct tcp_info (linux/tcp.h).
_OPTIONS, _SEGMENT, _UNACKNOWLEDGED, _ROUND_TRIP, _WINDOW = 5, 16, 24, 68, 80
_RETRANSMITTED, _ACKNOWLEDGED_BYTES, _SENT_SEGMENTS = 100, 120, 156


def receive(port: int) -> None:
    """Take one connection and read until its end."""
    with socket.create_server(("", port), family=_ADDRESS_FAMILY) as server:
        print(json.dumps({"listens": port}), flush=True)
        connection, _ = server.accept()
        with connection:
            received = 0
            while chunk := connection.recv(_CHUNK_BYTES):
                received += len(chunk)
            print(json.dumps({"bytes": received}), flush=True)


class Samples:
    """TCP_INFO over time, at most once in an interval."""

    def __init__(self, connection: socket.socket, interval_ns: int) -> None:
        self._connection, self._interval_ns, self._next_ns = connection, interval_ns, 0
        self.rows: list[tuple[int, int, int]] = []

    def info(self) -> bytes:
        """Return the structure, with zeros for what an older kernel does not have."""
        raw = self._connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
        return raw.ljust(_INFO_BYTES, b"\0")

    def take(self, now_ns: int) -> None:
        """Note time, congestion window in bytes and smoothed round trip in microseconds, if it is time."""
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + self._interval_ns
        raw = self.info()
        segment_bytes, round_trip_us, window = (
            struct.unpack_from("I", raw, at)[0] for at in (_SEGMENT, _ROUND_TRIP, _WINDOW)
        )
        self.rows.append((now_ns, segment_bytes * window, round_trip_us))


def send(address: str, port: int, control: str, dscp: int, begin_ns: int, duration_ns: int, sample_ns: int) -> None:
    """Send as much as goes from a time on, for so long."""
    with socket.socket(_ADDRESS_FAMILY, socket.SOCK_STREAM) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        time.sleep(max(0, begin_ns - time.monotonic_ns()) / 1e9)
        connection.connect((address, port))
        connection.settimeout(sample_ns / 1e9)
        samples, chunk = Samples(connection, sample_ns), bytes(_CHUNK_BYTES)
        while (now_ns := time.monotonic_ns()) < begin_ns + duration_ns:
            samples.take(now_ns)
            try:
                connection.send(chunk)
            except TimeoutError:
                continue
        raw = samples.info()
        connection.shutdown(socket.SHUT_WR)
        while struct.unpack_from("I", samples.info(), _UNACKNOWLEDGED)[0]:
            time.sleep(sample_ns / 1e9)
        ended_ns, last = time.monotonic_ns(), samples.info()
        found = {
            "options": raw[_OPTIONS],
            "segment_bytes": struct.unpack_from("I", raw, _SEGMENT)[0],
            "samples": samples.rows,
            "took_ns": ended_ns - begin_ns,
            "acknowledged_bytes": struct.unpack_from("Q", last, _ACKNOWLEDGED_BYTES)[0],
            "sent_segments": struct.unpack_from("I", last, _SENT_SEGMENTS)[0],
            "retransmitted_segments": struct.unpack_from("I", last, _RETRANSMITTED)[0],
        }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        send(*sys.argv[2:3], int(sys.argv[3]), sys.argv[4], *map(int, sys.argv[5:9]))
