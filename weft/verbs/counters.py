"""Counters of a host's RDMA device in files, where programs look for an adapter's.

A process of the host writes them, in place: a file that a program has open goes on, and a reader never finds half of
one, because a counter only grows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from weft.engine import _core

PORT_COUNTERS = (
    "port_xmit_data",
    "port_xmit_packets",
    "port_rcv_data",
    "port_rcv_packets",
    "port_rcv_errors",
)
"""A port's counters; data is counted in units of 4 bytes (Linux, Documentation/ABI/stable/sysfs-class-infiniband)."""

DATA_UNIT_BYTES = 4

UNRELIABLE_COUNTERS = {
    service: tuple(name for name in _core.record_types()[record] if name != "error")
    for service, record in (("uc", "UcCounters"), ("ud", "UdCounters"))
}
"""Counters that queue pairs of UC have besides RC's, and UD's; a device's sums are called `uc_NAME` and `ud_NAME`."""

MANAGEMENT_LOSSES = (
    "cm_unmatched",
    "cm_unreadable",
    "cm_without_room",
    "cm_forgotten_requests",
    "cm_sends_without_place",
    "cm_sends_refused",
)
"""Messages of connection management that came to nothing: of no connection or not of its state; no such message; beyond
the connections that a device has; requests that no program could be told of; not sent because too many had not left;
not sent because the port cannot send to the address."""

MESSAGE_FOLDERS = {
    "cm_tx_msgs": ("sent", "sent_again"),
    "cm_tx_retries": ("sent_again",),
    "cm_rx_msgs": ("received",),
    "cm_rx_duplicates": ("duplicates",),
}
"""Linux's folders of connection management's messages (drivers/infiniband/core/cm.c), a file for each kind, and which
counters of Weft each sums."""

MESSAGE_COUNTERS = tuple(f"{folder}/{kind}" for folder in MESSAGE_FOLDERS for kind in _core.cm_messages())

DEVICE_COUNTERS = (
    *(f"{service}_{name}" for service, names in UNRELIABLE_COUNTERS.items() for name in names),
    *MANAGEMENT_LOSSES,
    *MESSAGE_COUNTERS,
)
"""All counters of a device that a host's totals lack."""

_ADAPTERS_NAMES = {
    "np_cnp_sent": "cnps_sent",
    "rp_cnp_handled": "cnps_received",
    "np_ecn_marked_roce_packets": "ce_marked_packets",
    "out_of_sequence": "out_of_sequence_packets",
    "duplicate_request": "duplicate_packets",
    "packet_seq_err": "sequence_naks_received",
    "rnr_nak_retry_err": "rnr_naks_received",
    "local_ack_timeout_err": "timeouts",
    "rq_num_ucsdprd": "uc_messages_without_receive",
    "rq_num_udsdprd": "ud_datagrams_without_receive",
}

HARDWARE_COUNTERS = _ADAPTERS_NAMES | {
    name: name for name in DEVICE_COUNTERS if name not in MESSAGE_COUNTERS and name not in _ADAPTERS_NAMES.values()
}
"""Sums over all queue pairs of a device: the names on NVIDIA's adapters, and the counters of Weft that they show.
Counters that no adapter has keep Weft's name."""

REFRESH_S = 1.0
"""How old a counter may be while somebody watches; `hw_counters/lifespan` says so, in milliseconds."""


def counters_folder(device: Path, port: int) -> Path:
    """Return the folder of a port's counters, in the folder of a device."""
    return device / "ports" / str(port) / "counters"


HARDWARE_FOLDER = "hw_counters"
SHARED_FOLDERS = (HARDWARE_FOLDER, *MESSAGE_FOLDERS)
"""Folders of the counters that the ports of a device share."""


def shared_files(device: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file in `SHARED_FOLDERS`, with the counter of Weft that it shows."""
    for name, source in HARDWARE_COUNTERS.items():
        yield device / HARDWARE_FOLDER / name, source
    for name in MESSAGE_COUNTERS:
        yield device / name, name


class CounterFiles:
    """The files of a device's counters, which are there already and hold 0. Use as a context manager, or `close`."""

    def __init__(self, device: Path, ports: int) -> None:
        """Open the files of a device, `class/infiniband/NAME` of its sysfs. Raises OSError: one is missing."""
        self._files: dict[tuple[int, str], int] = {}
        self._written: dict[tuple[int, str], int] = {}
        try:
            for port in range(1, ports + 1):
                for name in PORT_COUNTERS:
                    self._open((port, name), counters_folder(device, port) / name)
            for path, source in shared_files(device):
                self._open((0, source), path)
        except OSError:
            self.close()
            raise

    def _open(self, counter: tuple[int, str], path: Path) -> None:
        self._files[counter] = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def write(self, ports: Mapping[int, Mapping[str, int]], totals: Mapping[str, int]) -> None:
        """Write counters that have grown; an adapter's do not go back, though Weft's can be reset.

        Args:
            ports: by port, values of `PORT_COUNTERS`.
            totals: of the host and its device (`HostMetrics`), by Weft's names; one that is not there stays 0.
        """
        values = {(port, name): value for port, counters in ports.items() for name, value in counters.items()}
        values |= {(port, name): totals.get(name, 0) for port, name in self._files if port == 0}
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
