"""Counters of a host's RDMA device in files, where programs look for an adapter's.

A process of the host writes them, in place: a file that a program has open goes on, and a reader never finds half of
one, because a counter only grows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

PORT_COUNTERS = (
    "port_xmit_data",
    "port_xmit_packets",
    "port_rcv_data",
    "port_rcv_packets",
    "port_rcv_errors",
)
"""A port's counters; data is counted in units of 4 bytes (Linux, Documentation/ABI/stable/sysfs-class-infiniband)."""

DATA_UNIT_BYTES = 4

HARDWARE_COUNTERS = {
    "np_cnp_sent": "cnps_sent",
    "rp_cnp_handled": "cnps_received",
    "np_ecn_marked_roce_packets": "ce_marked_packets",
    "out_of_sequence": "out_of_sequence_packets",
    "duplicate_request": "duplicate_packets",
    "packet_seq_err": "sequence_naks_received",
    "rnr_nak_retry_err": "rnr_naks_received",
    "local_ack_timeout_err": "timeouts",
}
"""Sums over all queue pairs of a device: the names on NVIDIA's adapters, and the counters of Weft that they show."""

REFRESH_S = 1.0
"""How old a counter may be while somebody watches; `hw_counters/lifespan` says so, in milliseconds."""


def counters_folder(device: Path, port: int) -> Path:
    """Return the folder of a port's counters, in the folder of a device."""
    return device / "ports" / str(port) / "counters"


def hardware_folder(device: Path) -> Path:
    """Return the folder of the counters that the ports of a device share."""
    return device / "hw_counters"


class CounterFiles:
    """The files of a device's counters, which are there already and hold 0. Use as a context manager, or `close`."""

    def __init__(self, device: Path, ports: int) -> None:
        """Open the files of a device, `class/infiniband/NAME` of its sysfs. Raises OSError: one is missing."""
        self._files: dict[tuple[int, str], int] = {}
        self._written: dict[tuple[int, str], int] = {}
        try:
            for port in range(1, ports + 1):
                for name in PORT_COUNTERS:
                    self._open(port, counters_folder(device, port) / name)
            for name in HARDWARE_COUNTERS:
                self._open(0, hardware_folder(device) / name)
        except OSError:
            self.close()
            raise

    def _open(self, port: int, path: Path) -> None:
        self._files[port, path.name] = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def write(self, ports: Mapping[int, Mapping[str, int]], totals: Mapping[str, int]) -> None:
        """Write counters that have grown; an adapter's do not go back, though Weft's can be reset.

        Args:
            ports: by port, values of `PORT_COUNTERS`.
            totals: of the host (`HostMetrics`), by Weft's names; one that its transport lacks stays 0.
        """
        values = {(port, name): value for port, counters in ports.items() for name, value in counters.items()}
        values |= {(0, name): totals.get(source, 0) for name, source in HARDWARE_COUNTERS.items()}
        for key, value in values.items():
            if value > self._written.get(key, 0):
                os.pwrite(self._files[key], b"%d\n" % value, 0)
                self._written[key] = value

    def close(self) -> None:
        """Close the files, which keep their values."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
