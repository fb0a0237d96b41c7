"""ICMP time exceeded: a switch's reports of packets with expired TTL, and their rate limit."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import finsy

from weft.controller.entities import entry
from weft.controller.features.kind import Feature, OfSwitch, Settings
from weft.topologies import FabricSpec

TABLE = "time_exceeded"
REPORTS_PER_S = 1000
"""Per IP version. RFC 1812, section 4.3.2.8, and RFC 4443, section 2.4 f, leave the rate open; Linux uses 1,000."""
BURST_REPORTS = 100
"""Reports sent at once: enough for traceroutes from some dozens of hosts to one switch."""


@cache
def time_exceeded_entities() -> tuple[finsy.P4TableEntry, ...]:
    """Return every switch's entries of `time_exceeded`."""
    rate = finsy.P4MeterConfig(cir=REPORTS_PER_S, cburst=BURST_REPORTS, pir=REPORTS_PER_S, pburst=BURST_REPORTS)
    return tuple(replace(entry(TABLE, {"ip_version": version}, "report"), meter_config=rate) for version in (4, 6))


def _entities(_fabric: FabricSpec, _settings: Settings) -> OfSwitch:
    return lambda _: time_exceeded_entities()


KIND = Feature(
    name="time exceeded",
    summary="Reports of packets with expired TTL.",
    tables=(TABLE,),
    entities=_entities,
)
