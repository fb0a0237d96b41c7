"""HPCC's INT: entries with which every port stamps packets (docs/spec/frames.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import finsy

from weft.controller.entities import entry, exact_arguments
from weft.controller.features.kind import Feature, OfSwitch, Row, Settings, port_name
from weft.controller.target import TargetFacts
from weft.topologies import FabricSpec, SwitchSpec
from weft.topologies.int_rates import (
    STANDARD_INT_RATES,
    UNKNOWN_RATE_CODE,
    IntRates,
    int_rates,
    rate_code,
)

if TYPE_CHECKING:
    from weft.controller.lab import Lab
    from weft.controller.session import SwitchSession

TABLE = "int_port"
BYTE_COUNTERS = "port_tx_bytes"
"""Register of bytes sent by each port; stamps carry them in multiples of 128 B."""


@dataclass(frozen=True)
class IntSettings:
    """Whether ports stamp INT."""

    enabled: bool = True


def int_entities(
    switch: SwitchSpec, target: TargetFacts, rates: IntRates = STANDARD_INT_RATES
) -> list[finsy.P4TableEntry]:
    """Return the entries of `int_port` for all ports: the code of the rate, and factors to nanoseconds and cells."""
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
def _port_entity(port: int, code: int, ns_per_time_unit: int, cells_per_depth_unit: int) -> finsy.P4TableEntry:
    """Return a port's entry; all switches share equal entries."""
    return entry(
        TABLE,
        {"port": port},
        "set_int",
        port_rate_code=code,
        ns_per_time_unit=ns_per_time_unit,
        cells_per_depth_unit=cells_per_depth_unit,
    )


async def int_rows(session: SwitchSession, spec: SwitchSpec | None, lab: Lab) -> list[Row]:
    """Return a row for each port: the stamp's rate and factors, and the packets stamped."""
    rates = int_rates(lab.fabric) if lab.fabric else STANDARD_INT_RATES
    entries = await session.read([finsy.P4TableEntry(TABLE, counter_data=finsy.P4CounterData())])
    rows = []
    for found in sorted(entries, key=lambda each: int(each["port"])):
        arguments = exact_arguments(found.action)
        rows.append(
            {
                "switch": session.name,
                "port": port_name(spec, int(found["port"])),
                "rate_code": arguments.get("port_rate_code"),
                "rate_gbps": _rate_gbps(rates, arguments.get("port_rate_code", UNKNOWN_RATE_CODE)),
                "ns_per_time_unit": arguments.get("ns_per_time_unit"),
                "cells_per_depth_unit": arguments.get("cells_per_depth_unit"),
                "stamped": found.counter_data.packet_count if found.counter_data else 0,
            }
        )
    return rows


def _rate_gbps(rates: IntRates, code: int) -> float | None:
    """Return a code's rate in Gb/s, as an integer if it is one; None for an unknown rate."""
    whole, rest = divmod(rates[code], 10**9)
    return (rates[code] / 10**9 if rest else whole) or None


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    if not settings.of(IntSettings).enabled:
        return lambda _switch: ()
    rates = int_rates(fabric)
    return lambda switch: int_entities(switch, settings.target, rates)


KIND = Feature(
    name="INT",
    summary="INT stamp of every port, and how many packets got it.",
    tables=(TABLE,),
    entities=_entities,
    command="int",
    rows=int_rows,
)
