"""Quantities as people write them: `10Gbps`, `1us`, `512KiB`."""

from __future__ import annotations

import re
from fractions import Fraction

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ/]*)\s*\Z")

RATE_UNITS = {"bps": 1, "Kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}
TIME_UNITS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
# As nccl-tests does, a bare K, M or G is a power of two.
SIZE_UNITS = {
    "": 1, "B": 1,
    "K": 2**10, "M": 2**20, "G": 2**30,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
    "KB": 10**3, "MB": 10**6, "GB": 10**9,
}  # fmt: skip


def _parse(text: str | int, units: dict[str, int], what: str, bare_unit: str | None) -> int:
    if isinstance(text, bool):
        raise ValueError(f"{what} '{text}' is not a quantity")
    if isinstance(text, int):
        text = f"{text}{bare_unit or ''}" if bare_unit is not None else str(text)
    match = _NUMBER.match(str(text))
    unit = match.group(2).replace("µ", "u") if match else ""
    if match is None or unit not in units:
        raise ValueError(f"{what} '{text}' is not a number with a unit of {', '.join(u for u in units if u)}")
    value = Fraction(match.group(1)) * units[unit]
    if value.denominator != 1:
        raise ValueError(
            f"{what} '{text}' is not a whole number of {next(u for u in units if units[u] == 1)}"
        )
    return int(value)


def parse_rate_bps(text: str | int) -> int:
    """Return bits per second for `10Gbps` and the like; a bare integer is bits per second."""
    return _parse(text, RATE_UNITS, "rate", "bps")


def parse_time_ps(text: str | int) -> int:
    """Return picoseconds for `1us` and the like; a bare integer is picoseconds."""
    return _parse(text, TIME_UNITS, "time", "ps")


def parse_size_bytes(text: str | int) -> int:
    """Return bytes for `512KiB`, `4M` (2^20) or `100KB` (10^3); a bare integer is bytes."""
    return _parse(text, SIZE_UNITS, "size", "")


def parse_size_range_bytes(text: str) -> list[int]:
    """Return the sizes that nccl-tests' BEGIN:END:FACTOR names, both ends included; a single size is itself.

    Sizes separated by commas are taken as they stand.
    """
    if ":" not in text:
        return [parse_size_bytes(part) for part in text.split(",")]
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError(f"size range '{text}' is not BEGIN:END:FACTOR, such as 4K:4M:2")
    begin, end = parse_size_bytes(parts[0]), parse_size_bytes(parts[1])
    try:
        factor = int(parts[2])
    except ValueError:
        factor = 0
    if begin < 1 or end < begin or factor < 2:
        raise ValueError(
            f"size range '{text}': BEGIN must be 1 or more, END at least BEGIN, FACTOR an integer from 2"
        )
    sizes = [begin]
    while sizes[-1] * factor <= end:
        sizes.append(sizes[-1] * factor)
    return sizes
