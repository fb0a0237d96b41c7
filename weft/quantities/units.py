"""Notation of quantities in files and options: `10Gb/s`, `1us`, `512KiB`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from weft.errors import InvalidValueError

_MAX_CHARACTERS = 64
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµμ/]*)\s*\Z", re.ASCII)
_SHOWN_CHARACTERS = 60
_BRACKETS: dict[type, tuple[str, str]] = {list: ("[", "]"), tuple: ("(", ")"), dict: ("{", "}")}

# `10Gb/s` is the usual notation of a rate; `10Gbps` and `10Gbit/s` mean the same.
_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
RATE_UNITS = {f"{prefix}{unit}": factor for unit in ("b/s", "bps", "bit/s") for prefix, factor in _PREFIXES.items()}
PS_PER_NS = 10**3
PS_PER_US = 10**6
PS_PER_MS = 10**9
PS_PER_S = 10**12
NS_PER_US = 10**3
NS_PER_S = 10**9
TIME_UNITS = {"ps": 1, "ns": PS_PER_NS, "us": PS_PER_US, "ms": PS_PER_MS, "s": PS_PER_S}
# Of what lasts for days: failures, repairs, training.
US_PER_S = 10**6
S_PER_DAY = 86400
DURATION_UNITS = {
    "us": 1, "ms": 10**3, "s": US_PER_S, "min": 60 * US_PER_S, "h": 3600 * US_PER_S, "d": S_PER_DAY * US_PER_S,
}  # fmt: skip
KIB, MIB, GIB = 2**10, 2**20, 2**30
# As nccl-tests does, a bare K, M or G is a power of two.
SIZE_UNITS = {
    "": 1, "B": 1,
    "K": KIB, "M": MIB, "G": GIB,
    "KiB": KIB, "MiB": MIB, "GiB": GIB,
    "KB": 10**3, "MB": 10**6, "GB": 10**9,
}  # fmt: skip

_RATE_CHOICES = ("b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s")
_TIME_CHOICES = ("ps", "ns", "us", "ms", "s")
_DURATION_CHOICES = ("s", "min", "h", "d")
_SIZE_CHOICES = ("B", "KiB", "MiB", "GiB", "KB", "MB", "GB")


def shown(value: object) -> str:
    """Return a value for an error message; text is quoted, and long values are shortened."""
    try:
        if type(value) in _BRACKETS:
            return _shown_container(value)
        text = repr(value) if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):
        # Python refuses to write integers of thousands of digits.
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"


def _shown_container(value: Any) -> str:
    """Return what `shown` does. The cost is bounded: files can nest values deeply, and repeat one value many times."""
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > _SHOWN_CHARACTERS:
            return f"{text[:_SHOWN_CHARACTERS]}… (a {type(value).__name__} of {len(value)})"
    return text


def _pieces(value: Any) -> Iterator[str]:
    """Yield the parts of Python's notation, of which none is empty; of long texts only the beginning."""
    if type(value) not in _BRACKETS:
        yield repr(value[: _SHOWN_CHARACTERS + 1] if isinstance(value, str) else value)
        return
    opening, closing = _BRACKETS[type(value)]
    yield opening
    for number, item in enumerate(value):
        if number:
            yield ", "
        yield from _pieces(item)
        if isinstance(value, dict):
            yield ": "
            yield from _pieces(value[item])
    yield ",)" if isinstance(value, tuple) and len(value) == 1 else closing


def _parse(text: object, units: dict[str, int], what: str, choices: Sequence[str], bare_unit: str | None) -> int:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise InvalidValueError(f"{shown(text)} is not a {what}", valid=f"a number with {_listed(choices)}")
    if isinstance(text, int):
        if bare_unit is None and text:
            raise InvalidValueError(f"{shown(text)} has no unit", valid=f"a number with {_listed(choices)}")
        return int(text)
    written = str(text)
    match = _NUMBER.match(written) if len(written) <= _MAX_CHARACTERS else None
    unit = re.sub("[µμ]", "u", match.group(2)) if match else ""
    if match and not unit and Fraction(match.group(1)) == 0:
        return 0  # in any unit
    if match is None or unit not in units:
        hint = _hint(match.group(1), unit, units) if match else ""
        valid = f"a number with {_listed(choices)}"
        raise InvalidValueError(f"{shown(text)} is not a {what}", valid=valid, hint=hint)
    value = Fraction(match.group(1)) * units[unit]
    if value.denominator != 1:
        raise ValueError(f"{shown(text)} is not a whole number of {next(u for u in units if u and units[u] == 1)}")
    return int(value)


def _listed(choices: Sequence[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _hint(number: str, unit: str, units: dict[str, int]) -> str:
    """Return a suggestion for a quantity with an unknown unit."""
    if units is RATE_UNITS:
        if unit in ("", *_PREFIXES):
            return f"did you mean {number}{unit or 'G'}b/s?"
        if unit.rstrip("/sp") in {f"{prefix}B" for prefix in _PREFIXES}:
            bits = Fraction(number) * 8
            value = str(bits.numerator) if bits.denominator == 1 else f"{float(bits):g}"
            return f"B is bytes: did you mean {value}{unit[: unit.index('B')]}b/s?"
    if units is TIME_UNITS and unit == "":
        return f"did you mean {number}us?"
    # A unit in the wrong case; the hint uses lower case if it is ambiguous (kb/s, not Kb/s).
    near = {known.lower(): known for known in units}.get(unit.lower())
    return f"did you mean {number}{near}?" if near else ""


def parse_rate_bps(text: str | int) -> int:
    """Return bits per second for `10Gb/s`, `10 Gbps` and the like; a bare integer is bits per second."""
    return _parse(text, RATE_UNITS, "rate", _RATE_CHOICES, "b/s")


def parse_time_ps(text: str | int) -> int:
    """Return picoseconds for `1us` and the like; a bare integer is picoseconds."""
    return _parse(text, TIME_UNITS, "time", _TIME_CHOICES, "ps")


def parse_duration_s(text: str | int) -> float:
    """Return seconds for `90s`, `30min`, `12h`, `54d` and the like; 0 needs no unit."""
    return _parse(text, DURATION_UNITS, "duration", _DURATION_CHOICES, None) / US_PER_S


def parse_size_bytes(text: str | int) -> int:
    """Return bytes for `512KiB`, `4M` (2^20) or `100KB` (10^3); a bare integer is bytes."""
    return _parse(text, SIZE_UNITS, "size", _SIZE_CHOICES, "")


def likely_rate(bps: int) -> str:
    """Return the rate that a bare number most likely means: `100Gb/s` for 100."""
    return f"{bps}Gb/s" if bps < 10**6 else shortest_rate(bps)


def shortest_rate(bps: int) -> str:
    """Return a rate in a scenario's notation: `100Gb/s`."""
    return _shortest(bps, {"Tb/s": 10**12, "Gb/s": 10**9, "Mb/s": 10**6, "kb/s": 10**3, "b/s": 1})


def shortest_time(ps: int) -> str:
    """Return a time in a scenario's notation: `1us`."""
    return _shortest(ps, dict(reversed(TIME_UNITS.items())))


def shortest_duration(seconds: float) -> str:
    """Return a duration in a scenario's notation: `30min`."""
    return _shortest(round(seconds * US_PER_S), dict(reversed(DURATION_UNITS.items())))


def shortest_size(size_bytes: int) -> str:
    """Return a size in a scenario's notation: `64KiB`."""
    return _shortest(size_bytes, {"GiB": GIB, "MiB": MIB, "KiB": KIB, "B": 1})


def _shortest(value: int, units: dict[str, int]) -> str:
    """Return a value as an integer with the largest unit that divides it."""
    if value == 0:
        return "0"
    name, factor = next((name, factor) for name, factor in units.items() if value % factor == 0)
    return f"{value // factor}{name}"


def parse_size_range_bytes(text: str) -> list[int]:
    """Return the sizes of nccl-tests' BEGIN:END:FACTOR, including both ends, or of a single size.

    Sizes separated by commas are returned as given.
    """
    if ":" not in text:
        return [parse_size_bytes(part) for part in text.split(",")]
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError(f"size range {shown(text)} is not BEGIN:END:FACTOR, such as 4K:4M:2")
    begin, end = parse_size_bytes(parts[0]), parse_size_bytes(parts[1])
    try:
        factor = int(parts[2])
    except ValueError:
        factor = 0
    if begin < 1 or end < begin or factor < 2:
        raise ValueError(
            f"size range {shown(text)}: BEGIN must be 1 or more, END at least BEGIN, FACTOR an integer from 2"
        )
    sizes = [begin]
    while sizes[-1] * factor <= end:
        sizes.append(sizes[-1] * factor)
    return sizes
