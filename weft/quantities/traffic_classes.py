"""Traffic classes on which engine, switches and controller agree (docs/spec/host-transports.md)."""

from __future__ import annotations

CLASSES = 8
"""Classes of a port."""
DATA_CLASS = 3
"""Default class of RoCEv2 data and of in-network aggregation."""
CONTROL_CLASS = 6
"""Class of acknowledgements and CNPs, above all data."""
DATA_CLASSES = range(CONTROL_CLASS)
"""Classes allowed for data."""
DSCP_OF_CLASS = {0: 0, 1: 8, 2: 16, DATA_CLASS: 26, 4: 32, 5: 40, CONTROL_CLASS: 48, 7: 56}
"""DSCP of each class: the class selector with its number (RFC 2474), except AF31, as is usual, for RoCEv2 data."""
