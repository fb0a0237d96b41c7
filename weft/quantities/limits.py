"""The lowest and highest values of links, queues and flows, which scenario files and Python's builders share."""

from __future__ import annotations

MIN_RATE_BPS = 10**6
MAX_RATE_BPS = 10**14
MAX_DELAY_PS = 10**12
MAX_TIME_PS = 1000 * 10**12
"""Of a start or a duration that users give. The engine's clock ends after 106 days."""
MIN_QUEUE_CAPACITY_BYTES = 1518
MAX_QUEUE_CAPACITY_BYTES = 2**34
MAX_FLOW_BYTES = 1 << 31
"""A flow is one WRITE, whose length the specification bounds so."""
MAX_FLOW_QUEUE_PAIRS = 256
"""Among which a flow may be divided."""
