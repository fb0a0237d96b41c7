"""Formats quantities for readers, with a unit that suits their size: `1.5 ms` or `3.25 GiB`.

`weft.quantities.units` writes quantities that scenarios can read back exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.quantities.units import PS_PER_MS, PS_PER_NS, PS_PER_S, PS_PER_US

_HOUR_PS = 3600 * PS_PER_S
_LEAST_GROUPED = 10_000
_LEAST_WHOLE = 100


@dataclass(frozen=True)
class Unit:
    """A unit: its name, and its size in the smallest unit."""

    name: str
    factor: int

    def of(self, value: float) -> float:
        """Convert a value from the smallest unit to this one."""
        return value / self.factor


TIME_UNITS = (
    Unit("d", 24 * _HOUR_PS),
    Unit("h", _HOUR_PS),
    Unit("s", PS_PER_S),
    Unit("ms", PS_PER_MS),
    Unit("µs", PS_PER_US),
    Unit("ns", PS_PER_NS),
    Unit("ps", 1),
)
SIZE_UNITS = (
    Unit("PiB", 2**50),
    Unit("TiB", 2**40),
    Unit("GiB", 2**30),
    Unit("MiB", 2**20),
    Unit("KiB", 2**10),
    Unit("B", 1),
)
RATE_UNITS = (
    Unit("Tb/s", 10**12),
    Unit("Gb/s", 10**9),
    Unit("Mb/s", 10**6),
    Unit("kb/s", 10**3),
    Unit("b/s", 1),
)


def unit_for(value: float, units: tuple[Unit, ...]) -> Unit:
    """Return the largest unit not larger than a value, or the smallest unit."""
    return next((unit for unit in units if abs(value) >= unit.factor), units[-1])


def time_unit(times_ps: Iterable[float]) -> Unit:
    """Return the unit for a column or an axis of times, chosen by the largest time."""
    return unit_for(max(map(abs, times_ps), default=0), TIME_UNITS)


def format_time(time_ps: float) -> str:
    """Return a time with its unit: `1 µs`."""
    return _formatted(time_ps, TIME_UNITS)


def format_size(size_bytes: float, digits: int = 4) -> str:
    """Return a size with a binary unit and `digits` significant digits: `1.5 GiB`."""
    return _formatted(size_bytes, SIZE_UNITS, digits)


def format_rate(rate_bps: float) -> str:
    """Return a rate with its unit: `10 Gb/s`."""
    return _formatted(rate_bps, RATE_UNITS)


def format_number(value: float) -> str:
    """Return a number to three digits, or rounded to an integer if that has more: `0.00126`, `34.9`, `609,426`."""
    return f"{value:,.0f}" if abs(value) >= _LEAST_WHOLE else f"{value:.3g}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 rank`, `2 ranks`; give `plural` if it is not formed with `s`."""
    number = f"{count:,}" if count >= _LEAST_GROUPED else str(count)
    return f"{number} {noun if count == 1 else plural or f'{noun}s'}"


def _formatted(value: float, units: tuple[Unit, ...], digits: int = 6) -> str:
    unit = unit_for(value, units)
    in_unit = unit.of(value)
    # Longer integer parts are written out, never with an exponent.
    text = f"{in_unit:,.0f}" if abs(in_unit) >= 10**digits else f"{in_unit:.{digits}g}"
    return f"{text} {unit.name}"
