"""Facts about a target that the controller needs: units of queue depth and time, and gaps in its P4Runtime."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from weft.controller.errors import SettingError

CELL_BYTES = 80
DEPTH_BITS = 19
"""Width of `enq_qdepth` and `deq_qdepth`; larger depths saturate."""
MOST_DEPTH_UNITS = (1 << DEPTH_BITS) - 1
DepthUnit = Literal["cells", "packets"]
TimeUnit = Literal["ns", "us"]
_NS_PER_TIME_UNIT: dict[TimeUnit, int] = {"ns": 1, "us": 1000}


@dataclass(frozen=True)
class TargetFacts:
    """Facts of a target.

    Attributes:
        name: "embedded" or "bmv2".
        depth_unit: unit of `enq_qdepth` and `deq_qdepth`.
        time_unit: unit of the timestamps.
        nominal_packet_bytes: bytes counted for each packet if the depth is in packets.
        cell_bytes: bytes of a cell if the depth is in cells: 80 times a power of two.
        watches_ports: whether group members may name a port to watch.

    """

    name: str
    depth_unit: DepthUnit
    time_unit: TimeUnit
    nominal_packet_bytes: int = 1024
    cell_bytes: int = CELL_BYTES
    watches_ports: bool = True

    def __post_init__(self) -> None:
        if self.depth_unit not in ("cells", "packets"):
            raise SettingError(f"unknown depth unit {self.depth_unit!r}", valid="'cells', 'packets'")
        if cell_bytes_for(MOST_DEPTH_UNITS * max(1, self.cell_bytes)) != self.cell_bytes:
            raise SettingError(f"cell_bytes={self.cell_bytes}", valid="80 times a power of two")
        if self.time_unit not in _NS_PER_TIME_UNIT:
            raise SettingError(f"unknown time unit {self.time_unit!r}", valid="'ns', 'us'")
        if self.nominal_packet_bytes < 1:
            raise SettingError(f"nominal_packet_bytes={self.nominal_packet_bytes}", valid="1 or more")

    def units(self) -> dict[str, Any]:
        """Return the arguments of `target_facts` other than the name."""
        names = ("depth_unit", "time_unit", "nominal_packet_bytes", "cell_bytes")
        return {name: getattr(self, name) for name in names}

    @property
    def depth_unit_bytes(self) -> int:
        """Bytes per unit of queue depth."""
        return self.cell_bytes if self.depth_unit == "cells" else self.nominal_packet_bytes

    @property
    def cells_per_depth_unit(self) -> int:
        """80-byte cells per unit of queue depth, rounded up."""
        return -(-self.depth_unit_bytes // CELL_BYTES)

    @property
    def ns_per_time_unit(self) -> int:
        """Nanoseconds per unit of time."""
        return _NS_PER_TIME_UNIT[self.time_unit]

    def depth_units(self, size_bytes: int) -> int:
        """Return a size as queue depth in the target's unit, rounded to the nearest."""
        return (size_bytes + self.depth_unit_bytes // 2) // self.depth_unit_bytes


def cell_bytes_for(depth_bytes: int) -> int:
    """Return the smallest cell size, 80 B times a power of two, with which a depth field can express `depth_bytes`."""
    cell_bytes = CELL_BYTES
    while depth_bytes > MOST_DEPTH_UNITS * cell_bytes:
        cell_bytes *= 2
    return cell_bytes


EMBEDDED = TargetFacts("embedded", depth_unit="cells", time_unit="ns")
# simple_switch_grpc applies one watched port to all members of a group, and fails when a member is removed.
BMV2 = TargetFacts("bmv2", depth_unit="packets", time_unit="us", watches_ports=False)
_TARGETS = {facts.name: facts for facts in (EMBEDDED, BMV2)}


def target_facts(
    name: str,
    depth_unit: DepthUnit | None = None,
    time_unit: TimeUnit | None = None,
    nominal_packet_bytes: int | None = None,
    cell_bytes: int | None = None,
) -> TargetFacts:
    """Return the facts of a target, with the configured values in place of its defaults.

    Raises:
        SettingError: unknown target or unit.

    """
    if name not in _TARGETS:
        raise SettingError(f"unknown target {name!r}", valid=map(repr, _TARGETS))
    facts = _TARGETS[name]
    return replace(
        facts,
        depth_unit=depth_unit or facts.depth_unit,
        time_unit=time_unit or facts.time_unit,
        nominal_packet_bytes=nominal_packet_bytes or facts.nominal_packet_bytes,
        cell_bytes=cell_bytes or facts.cell_bytes,
    )
