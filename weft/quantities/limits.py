"""Limits of links, queues and flows, shared by scenario files and the Python builders."""

from __future__ import annotations

from weft.quantities.units import PS_PER_S

MIN_RATE_BPS = 10**6
MAX_RATE_BPS = 10**14
MAX_DELAY_PS = PS_PER_S
MAX_TIME_PS = 1000 * PS_PER_S
"""Largest start time or duration that users may give. The engine's clock ends after 106 days."""
MIN_QUEUE_CAPACITY_BYTES = 1518
MAX_QUEUE_CAPACITY_BYTES = 2**34
MAX_FLOW_BYTES = 1 << 31
"""Longest flow: it is one WRITE, and this is the specification's limit for it."""
MAX_FLOW_QUEUE_PAIRS = 256
"""Most queue pairs that may share a flow."""
