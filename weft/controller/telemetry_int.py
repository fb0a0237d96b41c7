"""HPCC's INT: what every port stamps (docs/spec/frames.md)."""

from __future__ import annotations

from functools import lru_cache

import finsy

from weft.controller.entities import entry
from weft.controller.target import TargetFacts
from weft.topologies import SwitchSpec
from weft.topologies.int_rates import STANDARD_INT_RATES, IntRates, rate_code

TABLE = "int_port"
BYTE_COUNTERS = "port_tx_bytes"
"""The register with what every port has sent, of which stamps tell multiples of 128 B."""


def int_entities(
    switch: SwitchSpec, target: TargetFacts, rates: IntRates = STANDARD_INT_RATES
) -> list[finsy.P4TableEntry]:
    """Entries of `int_port` for all ports: code of the rate in the fabric, and the factors to nanoseconds and cells."""
    return [
        _port_entity(
            port.number,
            rate_code(rates, port.link.rate_bps),
            target.ns_per_time_unit,
            target.cells_per_depth_unit,
        )
        for port in switch.ports
    ]


@lru_cache(maxsize=1 << 13)
def _port_entity(
    port: int, code: int, ns_per_time_unit: int, cells_per_depth_unit: int
) -> finsy.P4TableEntry:
    """Return a port's entry, the same object for all switches alike."""
    return entry(
        TABLE,
        {"port": port},
        "set_int",
        port_rate_code=code,
        ns_per_time_unit=ns_per_time_unit,
        cells_per_depth_unit=cells_per_depth_unit,
    )
