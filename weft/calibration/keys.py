"""The keys of a scenario that a fit may change, and the scales on which it does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from weft.errors import BadInputError
from weft.hints import did_you_mean
from weft.quantities.readable import format_rate, format_size, format_time
from weft.quantities.units import PS_PER_S, PS_PER_US, shortest_rate, shortest_size, shortest_time
from weft.scenario import Scenario
from weft.topologies.kinds.base import ScaleUpSection
from weft.traffic.protocols import AUTO_PROTOCOL, LL, LL128, NONE, PROTOCOLS

if TYPE_CHECKING:
    from weft.calibration.runs import ComparedTable

_SMALL_TIME_PS = 50_000
"""Below about this, steps of a fit are even in time; above, in its logarithm, as steps of rates are."""
_SMALL_SIZE_BYTES = 1024
"""The same of sizes."""
_DIGITS = 4
"""Significant digits of a value that a fit tries, so that the file holds exactly what ran."""


class Scale(Enum):
    """The kind of a key's value."""

    TIME = "time"
    RATE = "rate"
    SIZE = "size"


_SMALL = {Scale.TIME: _SMALL_TIME_PS, Scale.SIZE: _SMALL_SIZE_BYTES, Scale.RATE: 0}
_WRITE: dict[Scale, Callable[[int], str]] = {
    Scale.TIME: shortest_time,
    Scale.RATE: shortest_rate,
    Scale.SIZE: shortest_size,
}
_SHOW: dict[Scale, Callable[[int], str]] = {
    Scale.TIME: format_time,
    Scale.RATE: format_rate,
    Scale.SIZE: format_size,
}


@dataclass(frozen=True)
class Key:
    """A key that a fit may change.

    Attributes:
        name: its place in a scenario.
        scale: a time (ps), a rate (b/s) or a size (bytes).
        bounds: the least and the largest value that a fit tries.
        of_ranks_in_hosts: whether it exists only with several ranks a host.
        protocol: NCCL's that it is a cost of, "" for none.
    """

    name: str
    scale: Scale
    bounds: tuple[int, int]
    of_ranks_in_hosts: bool = False
    protocol: str = NONE

    @property
    def is_threshold(self) -> bool:
        """Whether times change at some values of it only, so that slopes say nothing."""
        return self.scale is Scale.SIZE

    def position(self, value: int) -> float:
        """Return where a value stands on the scale of the fit."""
        small = _SMALL[self.scale]
        return math.log1p(value / small) if small else math.log(value)

    def value(self, position: float) -> int:
        """Return the value at a position, within the bounds and to four significant digits."""
        small = _SMALL[self.scale]
        return self.rounded(small * math.expm1(position) if small else math.exp(position))

    def rounded(self, value: float) -> int:
        """Return a value within the bounds and to four significant digits; of a threshold exactly."""
        low, high = self.bounds
        inside = min(max(value, low), high)
        return round(inside) if self.is_threshold else round_significant(inside)

    def trials(self, start: int) -> list[int]:
        """Return the values with which a fit begins: `start`, and others over the whole range that is usual."""
        if self.scale is Scale.TIME:
            values = [0, 100_000, 300_000, PS_PER_US, 3 * PS_PER_US, 10 * PS_PER_US, 30 * PS_PER_US]
        elif self.scale is Scale.SIZE:
            values = [0, *(2**power for power in range(10, 31, 2))]
        else:
            values = [round_significant(start * 2.0**power) for power in (-4, -3, -2, -1, 1, 2)]
        low, high = self.bounds
        return [start, *(value for value in values if low <= value <= high and value != start)]

    def neighbours(self, value: int) -> list[int]:
        """Return values half as far away as the next ones with which a fit begins."""
        return [self.value(self.position(value) + step) for step in (-math.log(2) / 2, math.log(2) / 2)]

    def written(self, value: int) -> str:
        """Return a value as a scenario has it: `350ns`."""
        return _WRITE[self.scale](value)

    def shown(self, value: int | None) -> str:
        """Return a value for people: `350 ns`."""
        if value is None:
            return "predicted" if self.is_threshold else "unlimited"
        return _SHOW[self.scale](value)

    def held_by(self, scenario: Scenario) -> int | None:
        """Return the value in a scenario; None for a rate without limit and a size that is predicted."""
        section, _, name = self.name.rpartition(".")
        found: Any = scenario
        for part in section.split("."):
            found = getattr(found, part)
        if found is None:
            found = ScaleUpSection()
        value = getattr(found, name)
        return None if value is None else int(value)

    def start(self, scenario: Scenario) -> int:
        """Return where a fit begins: at the scenario's value, or at a rate that all NICs of a rank reach together.

        A size that the scenario leaves to prediction begins at 64 KiB for LL, at 4 MiB for LL128.
        """
        held = self.held_by(scenario)
        if held is None and self.is_threshold:
            held = _USUAL_THRESHOLDS[self.protocol]
        if held is None:
            held = scenario.fabric.host_rate * scenario.fabric.planes
        return self.rounded(held)


_TIMES = (0, PS_PER_S // 1000)
_RATES = (10**9, 100 * 10**12)
_SIZES = (0, 2**30)

_USUAL_THRESHOLDS = {LL: 2**16, LL128: 2**22}


def _of_protocols() -> Iterator[Key]:
    for name in PROTOCOLS:
        yield Key(f"protocols.{name}_latency", Scale.TIME, _TIMES, protocol=name)
        yield Key(f"protocols.{name}_scale_up_latency", Scale.TIME, _TIMES, True, name)
    for name in _USUAL_THRESHOLDS:
        yield Key(f"protocols.{name}_up_to", Scale.SIZE, _SIZES, protocol=name)


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
        *_of_protocols(),
    )
}
"""All keys that a fit may change, by name."""
_OF_HOSTS = ("nic.per_message_overhead", "nic.per_packet_overhead")
_WITHIN_HOSTS = ("fabric.scale_up.rate", "fabric.scale_up.latency")


def chosen_keys(names: Sequence[str], scenario: Scenario, compared: Sequence[ComparedTable] = ()) -> list[Key]:
    """Return the keys named, or those that suit the fabric: overheads of NICs, and scale-up links if it has them.

    Where what is compared has a protocol, the steps' latencies of its protocols are fitted in place of others.

    Raises:
        BadInputError: a key is unknown, named twice, or not one of this fabric.
    """
    several = scenario.fabric.ranks_per_host is not None
    if not names:
        plain = any(not each.protocol for each in compared) or not compared
        chosen = [*(_OF_HOSTS + (_WITHIN_HOSTS if several else ()) if plain else ()), *_of_tables(compared)]
        return [KEYS[name] for name in dict.fromkeys(chosen)]
    for place, name in enumerate(names):
        if name not in KEYS:
            raise BadInputError(f"{name!r} is no key to fit; {did_you_mean(name, KEYS)}", place="--keys")
        if name in names[:place]:
            raise BadInputError(f"'{name}' is given twice", place="--keys")
        if KEYS[name].of_ranks_in_hosts and not several:
            raise BadInputError(f"'{name}' needs fabric.ranks_per_host, which the scenario lacks", place="--keys")
        if not hasattr(scenario.fabric, name.split(".")[1]) and name.startswith("fabric."):
            raise BadInputError(f"a fabric of kind {scenario.fabric.kind} lacks '{name}'", place="--keys")
    return [_in_order(KEYS[name], names, scenario) for name in names]


def _in_order(key: Key, names: Sequence[str], scenario: Scenario) -> Key:
    """Return a threshold with bounds at the scenario's own threshold of the other protocol, if that is not fitted."""
    ll, ll128 = (KEYS[f"protocols.{name}_up_to"] for name in (LL, LL128))
    low, high = key.bounds
    if key is ll and ll128.name not in names and (held := ll128.held_by(scenario)) is not None:
        return replace(key, bounds=(low, min(high, held)))
    if key is ll128 and ll.name not in names and (held := ll.held_by(scenario)) is not None:
        return replace(key, bounds=(held, max(high, held)))
    return key


def _of_tables(compared: Sequence[ComparedTable]) -> Iterator[str]:
    """Yield the keys of protocols that tables tell, and the rates at which these carry data."""
    for each in compared:
        if not each.protocol:
            continue
        between = each.table.nodes > 1
        yield "nic.per_packet_overhead" if between else "fabric.scale_up.rate"
        is_auto = each.protocol == AUTO_PROTOCOL
        for name in PROTOCOLS if is_auto else (each.protocol,):
            yield f"protocols.{name}_latency" if between else f"protocols.{name}_scale_up_latency"
        if is_auto:
            yield from (f"protocols.{name}_up_to" for name in _USUAL_THRESHOLDS)


def round_significant(value: float) -> int:
    """Return a value as an integer of at most four significant digits."""
    if value < 10**_DIGITS:
        return round(value)
    factor: int = 10 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return round(value / factor) * factor
