"""The classes in which hosts send: what engine, switches and controller agree on (docs/spec/host-transports.md)."""

from __future__ import annotations

CLASSES = 8
"""Of a port."""
DATA_CLASS = 3
"""Of RoCEv2's data, and of what the network aggregates, unless a job says otherwise."""
CONTROL_CLASS = 6
"""Of acknowledgements and CNPs: above all data."""
DATA_CLASSES = range(CONTROL_CLASS)
"""In which data may travel."""
DSCP_OF_CLASS = {0: 0, 1: 8, 2: 16, DATA_CLASS: 26, 4: 32, 5: 40, CONTROL_CLASS: 48, 7: 56}
"""On the wire. The class selector of that number (RFC 2474), but for RoCEv2's data: AF31, as is usual for it."""
