"""HPCC's INT stack as plain values, without Scapy, for endpoints and reports.

Format: docs/spec/frames.md, after Li et al., "HPCC: High Precision Congestion Control",
SIGCOMM 2019, §4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.topologies.int_rates import STANDARD_INT_RATES
from weft.traffic.host_stats import StackInBytes
from weft.wire.headers.int_shim import INT_ETHERTYPE, INT_HOP, INT_HOP_SLOTS, INT_SHIM, INT_VERSION

__all__ = [
    "INT_ETHERTYPE",
    "INT_HOP_SLOTS",
    "INT_SHIM_BYTES",
    "INT_VERSION",
    "MOST_QUEUE_BYTES",
    "QUEUE_CELL_BYTES",
    "TX_UNIT_BYTES",
    "stack_in_bytes",
]

INT_SHIM_BYTES = INT_SHIM.size_bytes
TX_UNIT_BYTES = INT_HOP.field("tx_units").unit_bytes
QUEUE_CELL_BYTES = INT_HOP.field("queue_cells").unit_bytes
MOST_QUEUE_BYTES = max(INT_HOP.field("queue_cells").valid_values) * QUEUE_CELL_BYTES
"""The field reports any deeper queue as this one."""


def stack_in_bytes(telemetry: Mapping[str, Any], rates_bps: Sequence[int] = STANDARD_INT_RATES) -> StackInBytes:
    """Turn an INT stack as the engine reports it, in wire units, into bytes and bits per second.

    `hops` are those stamped, in the order in which the packet met them. Timestamps are modulo 2^24 ns, tx_bytes
    modulo 2^27; `rates_bps` are what the fabric's 16 rate codes stand for, 0 for an unknown one.
    """
    return {
        "path_id": telemetry["path_id"],
        "overflow": telemetry["overflow"],
        "hops": [
            {
                "rate_bps": rates_bps[hop["rate_code"]],
                "timestamp_ns": hop["timestamp_ns"],
                "tx_bytes": hop["tx_units"] * TX_UNIT_BYTES,
                "queue_bytes": hop["queue_cells"] * QUEUE_CELL_BYTES,
            }
            for hop in telemetry["hops"][: telemetry["hop_count"]]
        ],
    }
