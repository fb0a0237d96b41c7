"""Counters of hosts' NICs, in the form in which the controller reads switches' counters."""

from __future__ import annotations

from collections.abc import Iterable

from weft.controller.counters import Count, PortCounters
from weft.traffic.host_stats import PortTraffic


def counters_of_host(ports: Iterable[PortTraffic]) -> list[PortCounters]:
    """Return the counters of each port; bytes of what was received are not counted."""
    return [
        PortCounters(
            received=Count(port["received_packets"]), sent=Count(port["sent_packets"], port["sent_bytes"])
        )
        for port in ports
    ]
