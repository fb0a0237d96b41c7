"""Quantities as people read them: with the unit that suits their size, `1.5 ms` or `3.25 GiB`.

What a scenario can take back exactly is written by `weft.quantities.units`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_HOUR_PS = 3600 * 10**12
_LEAST_GROUPED = 10_000
_LEAST_WHOLE = 100


@dataclass(frozen=True)
class Unit:
    """A unit: its name, and how many of the smallest unit it is."""

    name: str
    factor: int

    def of(self, value: float) -> float:
        """Return a value of the smallest unit in this one."""
        return value / self.factor


TIME_UNITS = (
    Unit("d", 24 * _HOUR_PS),
    Unit("h", _HOUR_PS),
    Unit("s", 10**12),
    Unit("ms", 10**9),
    Unit("µs", 10**6),
    Unit("ns", 10**3),
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
    """Return the largest unit of which a value has at least one, the smallest for anything less."""
    return next((unit for unit in units if abs(value) >= unit.factor), units[-1])


def time_unit(times_ps: Iterable[float]) -> Unit:
    """Return the unit for a column or an axis of times: that of the largest."""
    return unit_for(max(map(abs, times_ps), default=0), TIME_UNITS)


def format_time(time_ps: float) -> str:
    """Time with its unit: `1 µs`."""
    return _formatted(time_ps, TIME_UNITS)


def format_size(size_bytes: float, digits: int = 4) -> str:
    """Size with its unit, a power of two, and with so many digits: `1.5 GiB`."""
    return _formatted(size_bytes, SIZE_UNITS, digits)


def format_rate(rate_bps: float) -> str:
    """Rate with its unit: `10 Gb/s`."""
    return _formatted(rate_bps, RATE_UNITS)


def format_number(value: float) -> str:
    """Number of three digits, or its whole part if that has more: `0.00126`, `34.9`, `609,426`."""
    return f"{value:,.0f}" if abs(value) >= _LEAST_WHOLE else f"{value:.3g}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 rank`, `2 ranks`; `plural` is the noun's if it does not end in `s`."""
    number = f"{count:,}" if count >= _LEAST_GROUPED else str(count)
    return f"{number} {noun if count == 1 else plural or f'{noun}s'}"


def _formatted(value: float, units: tuple[Unit, ...], digits: int = 6) -> str:
    unit = unit_for(value, units)
    in_unit = unit.of(value)
    # Whole parts of more digits are written out, never with an exponent.
    text = f"{in_unit:,.0f}" if abs(in_unit) >= 10**digits else f"{in_unit:.{digits}g}"
    return f"{text} {unit.name}"
