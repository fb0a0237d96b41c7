"""Storage devices: access latency, concurrent accesses, and bandwidth."""

from __future__ import annotations

from typing import Annotated

from weft.quantities.definitions import PositiveTime, Rate, whole
from weft.quantities.section import Section
from weft.quantities.units import PS_PER_S


class Accesses(Section):
    """A device's performance for reads or for writes.

    An access occupies one channel, determined by its address, for the latency. Blocks pass the device's interface one
    at a time. So the device does at most channels / latency blocks per second, and `bandwidth`.
    """

    latency: PositiveTime
    """Time of an access to the medium, or to the write cache."""
    bandwidth: Rate
    """Bandwidth of the device's interface."""
    channels: Annotated[int, whole(1, 1024)] = 1
    """Concurrent accesses."""

    def transfer_ps(self, size_bytes: int) -> int:
        """Return how long the interface takes to transfer `size_bytes`."""
        return -(-size_bytes * 8 * PS_PER_S // self.bandwidth)

    def bytes_per_s(self, block_bytes: int) -> float:
        """Return the throughput of blocks of this size if they occupy all channels evenly."""
        return min(self.bandwidth / 8, self.channels * block_bytes * PS_PER_S / self.latency)


class Device(Section):
    """A storage device. Reads and writes have separate channels and interfaces."""

    read: Accesses
    """Performance of reads."""
    write: Accesses
    """Performance of writes."""

    def accesses(self, *, reads: bool) -> Accesses:
        """Return the performance of reads or of writes."""
        return self.read if reads else self.write


def _of_data_sheet(
    read_us: int,
    read_gb_per_s: float,
    read_kiops: int,
    write_us: int,
    write_gb_per_s: float,
    write_kiops: int,
) -> Device:
    """Return the device with these figures; data sheets omit channels, so these are accesses/s times latency.

    Only addresses spread evenly over the channels reach that many accesses/s; random ones reach fewer.
    """

    def accesses(latency_us: int, gb_per_s: float, kiops: int) -> Accesses:
        return Accesses(
            latency=latency_us * 10**6,
            bandwidth=round(gb_per_s * 8 * 10**9),
            channels=max(1, round(kiops * latency_us / 1000)),
        )

    return Device(
        read=accesses(read_us, read_gb_per_s, read_kiops),
        write=accesses(write_us, write_gb_per_s, write_kiops),
    )


DEVICES: dict[str, Device] = {
    # Micron 9200 data sheet (2018): 128 KiB sequential 3.5 and 3.5 GB/s, 4 KiB random up to 840 and 285 thousand
    # accesses/s, typical latency at queue depth 1 from 92 and 21 µs. PCIe 3.0 x4.
    "9200": _of_data_sheet(92, 3.5, 840, 21, 3.5, 285),
    # Micron 9550 MAX, 6.4 TB (product brief of 2024, as StorageReview's test of the drive lists it): 14 and 10 GB/s,
    # 3,300 and 640 thousand accesses/s, typical latency 60 and 15 µs. PCIe 5.0 x4.
    "9550": _of_data_sheet(60, 14, 3300, 15, 10, 640),
}
"""Devices by name."""
