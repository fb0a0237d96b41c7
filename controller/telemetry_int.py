"""HPCC's INT: what every port stamps (ARCHITECTURE.md, "INT shim")."""

from __future__ import annotations

import finsy

from controller.entities import entry
from controller.target import TargetFacts
from topologies import SwitchSpec

TABLE = "int_port"
UNKNOWN_RATE_CODE = 0
RATE_GBPS_OF_CODE = {1: 1, 2: 10, 3: 25, 4: 40, 5: 50, 6: 100, 7: 200, 8: 400, 9: 800, 10: 1600}
_CODE_OF_RATE_BPS = {gbps * 10**9: code for code, gbps in RATE_GBPS_OF_CODE.items()}


def rate_code(rate_bps: int) -> int:
    """Code of a port's rate; 0 (unknown) for a rate that has none."""
    return _CODE_OF_RATE_BPS.get(rate_bps, UNKNOWN_RATE_CODE)


def int_entities(switch: SwitchSpec, target: TargetFacts) -> list[finsy.P4TableEntry]:
    """Entries of `int_port` for all ports: rate code, and the factors to nanoseconds and cells."""
    return [
        entry(
            TABLE,
            {"port": port.number},
            "set_int",
            port_rate_code=rate_code(port.link.rate_bps),
            ns_per_time_unit=target.ns_per_time_unit,
            cells_per_depth_unit=target.cells_per_depth_unit,
        )
        for port in switch.ports
    ]
