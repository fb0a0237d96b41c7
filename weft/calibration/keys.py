"""The keys of a scenario that a fit may change, and the scales on which it does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from weft.errors import BadInputError
from weft.hints import did_you_mean
from weft.quantities.readable import format_rate, format_time
from weft.quantities.units import PS_PER_S, PS_PER_US, shortest_rate, shortest_time
from weft.scenario import Scenario
from weft.topologies.kinds.base import ScaleUpSection

_SMALL_TIME_PS = 50_000
"""Below about this, steps of a fit are even in time; above, in its logarithm, as those of rates are."""
_DIGITS = 4
"""Significant digits of a value that a fit tries, so that the file holds exactly what ran."""


class Scale(Enum):
    """The kind of a key's value."""

    TIME = "time"
    RATE = "rate"


@dataclass(frozen=True)
class Key:
    """A key that a fit may change.

    Attributes:
        name: its place in a scenario.
        scale: a time (ps) or a rate (b/s).
        bounds: the least and the largest value that a fit tries.
        of_ranks_in_hosts: whether it exists only with several ranks a host.
    """

    name: str
    scale: Scale
    bounds: tuple[int, int]
    of_ranks_in_hosts: bool = False

    def position(self, value: int) -> float:
        """Return where a value stands on the scale of the fit."""
        return math.log(value) if self.scale is Scale.RATE else math.log1p(value / _SMALL_TIME_PS)

    def value(self, position: float) -> int:
        """Return the value at a position, within the bounds and to four significant digits."""
        exact = math.exp(position) if self.scale is Scale.RATE else _SMALL_TIME_PS * math.expm1(position)
        return self.rounded(exact)

    def rounded(self, value: float) -> int:
        """Return a value within the bounds and to four significant digits."""
        low, high = self.bounds
        return round_significant(min(max(value, low), high))

    def trials(self, start: int) -> list[int]:
        """Return the values with which a fit begins: `start`, and others over the whole range that is usual."""
        if self.scale is Scale.TIME:
            values = [0, 100_000, 300_000, PS_PER_US, 3 * PS_PER_US, 10 * PS_PER_US, 30 * PS_PER_US]
        else:
            values = [round_significant(start * 2.0**power) for power in (-4, -3, -2, -1, 1, 2)]
        low, high = self.bounds
        return [start, *(value for value in values if low <= value <= high and value != start)]

    def written(self, value: int) -> str:
        """Return a value as a scenario has it: `350ns`."""
        return shortest_rate(value) if self.scale is Scale.RATE else shortest_time(value)

    def shown(self, value: int | None) -> str:
        """Return a value for people: `350 ns`."""
        if value is None:
            return "unlimited"
        return format_rate(value) if self.scale is Scale.RATE else format_time(value)

    def held_by(self, scenario: Scenario) -> int | None:
        """Return the value in a scenario; None for a rate without limit."""
        section, _, name = self.name.rpartition(".")
        found: Any = scenario
        for part in section.split("."):
            found = getattr(found, part)
        if found is None:
            found = ScaleUpSection()
        value = getattr(found, name)
        return None if value is None else int(value)

    def start(self, scenario: Scenario) -> int:
        """Return where a fit begins: at the scenario's value, or at a rate that all NICs of a rank reach together."""
        held = self.held_by(scenario)
        if held is None:
            held = scenario.fabric.host_rate * scenario.fabric.planes
        return min(max(round_significant(held), self.bounds[0]), self.bounds[1])


_TIMES = (0, PS_PER_S // 1000)
_RATES = (10**9, 100 * 10**12)

KEYS = {
    key.name: key
    for key in (
        Key("nic.per_message_overhead", Scale.TIME, _TIMES),
        Key("nic.per_packet_overhead", Scale.TIME, _TIMES),
        Key("nic.dma_latency", Scale.TIME, _TIMES),
        Key("nic.pcie_rate", Scale.RATE, _RATES),
        Key("fabric.host_rate", Scale.RATE, _RATES),
        Key("fabric.delay", Scale.TIME, _TIMES),
        Key("fabric.scale_up.rate", Scale.RATE, _RATES, of_ranks_in_hosts=True),
        Key("fabric.scale_up.latency", Scale.TIME, _TIMES, of_ranks_in_hosts=True),
    )
}
"""All keys that a fit may change, by name."""
_OF_HOSTS = ("nic.per_message_overhead", "nic.per_packet_overhead")
_WITHIN_HOSTS = ("fabric.scale_up.rate", "fabric.scale_up.latency")


def chosen_keys(names: Sequence[str], scenario: Scenario) -> list[Key]:
    """Return the keys named, or those that suit the fabric: overheads of NICs, and scale-up links if it has them.

    Raises:
        BadInputError: a key is unknown, named twice, or not one of this fabric.
    """
    several = scenario.fabric.ranks_per_host is not None
    if not names:
        return [KEYS[name] for name in _OF_HOSTS + (_WITHIN_HOSTS if several else ())]
    for place, name in enumerate(names):
        if name not in KEYS:
            raise BadInputError(f"{name!r} is no key to fit; {did_you_mean(name, KEYS)}", place="--keys")
        if name in names[:place]:
            raise BadInputError(f"'{name}' is given twice", place="--keys")
        if KEYS[name].of_ranks_in_hosts and not several:
            raise BadInputError(f"'{name}' needs fabric.ranks_per_host, which the scenario lacks", place="--keys")
        if not hasattr(scenario.fabric, name.split(".")[1]) and name.startswith("fabric."):
            raise BadInputError(f"a fabric of kind {scenario.fabric.kind} lacks '{name}'", place="--keys")
    return [KEYS[name] for name in names]


def round_significant(value: float) -> int:
    """Return a value as an integer of at most four significant digits."""
    if value < 10**_DIGITS:
        return round(value)
    factor: int = 10 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return round(value / factor) * factor
