"""HPCC's INT stack as plain values, without Scapy, for endpoints and reports.

Format: ARCHITECTURE.md, "INT shim (HPCC)", after Li et al., "HPCC: High Precision Congestion Control",
SIGCOMM 2019, §4.1.
"""

from __future__ import annotations

from dataclasses import dataclass

INT_ETHERTYPE = 0x88B5
INT_VERSION = 1
INT_HOP_SLOTS = 5
INT_SHIM_BYTES = 6 + 8 * INT_HOP_SLOTS

TX_UNIT_BYTES = 128
QUEUE_CELL_BYTES = 80

RATE_CODE_BPS: dict[int, int] = {
    0: 0,  # unknown
    1: 1_000_000_000,
    2: 10_000_000_000,
    3: 25_000_000_000,
    4: 40_000_000_000,
    5: 50_000_000_000,
    6: 100_000_000_000,
    7: 200_000_000_000,
    8: 400_000_000_000,
    9: 800_000_000_000,
    10: 1_600_000_000_000,
}


@dataclass(frozen=True)
class Hop:
    """What one switch stamped. `timestamp_ns` is modulo 2^24, `tx_bytes` modulo 2^20 units of 128 bytes."""

    rate_bps: int
    timestamp_ns: int
    tx_bytes: int
    queue_bytes: int


@dataclass(frozen=True)
class Stack:
    """An INT stack: the hops in the order in which the packet met them."""

    path_id: int
    overflow: bool
    echo: bool
    hops: tuple[Hop, ...]


def decode_hop(word: int) -> Hop:
    """Decode a hop's 64 bits. A rate code outside the table reads as rate 0 (unknown)."""
    return Hop(
        rate_bps=RATE_CODE_BPS.get(word >> 60, 0),
        timestamp_ns=(word >> 36) & 0xFFFFFF,
        tx_bytes=((word >> 16) & 0xFFFFF) * TX_UNIT_BYTES,
        queue_bytes=(word & 0xFFFF) * QUEUE_CELL_BYTES,
    )


def decode_stack(shim: bytes) -> Stack:
    """Decode a whole shim (46 bytes from the version nibble on).

    Raises ValueError for a wrong length, version, number of slots or a hop count above it.
    """
    if len(shim) < INT_SHIM_BYTES:
        raise ValueError(f"INT shim of {len(shim)} bytes (valid: {INT_SHIM_BYTES})")
    version, hop_slots = shim[0] >> 4, shim[1]
    if version != INT_VERSION:
        raise ValueError(f"INT shim version {version} (valid: {INT_VERSION})")
    if hop_slots != INT_HOP_SLOTS:
        raise ValueError(f"INT shim with {hop_slots} hop slots (valid: {INT_HOP_SLOTS})")
    hop_count = shim[4] >> 4
    if hop_count > hop_slots:
        raise ValueError(f"INT shim with hop count {hop_count} (valid: 0 to {hop_slots})")
    hops = (int.from_bytes(shim[6 + 8 * i : 14 + 8 * i], "big") for i in range(hop_count))
    return Stack(
        path_id=int.from_bytes(shim[4:6], "big") & 0xFFF,
        overflow=bool(shim[0] & 0x04),
        echo=bool(shim[0] & 0x08),
        hops=tuple(decode_hop(word) for word in hops),
    )
