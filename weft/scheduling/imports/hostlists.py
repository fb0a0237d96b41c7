"""Slurm's host lists, such as tux[0-3,12],login: names with ranges of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from weft.errors import BadInputError, InvalidValueError
from weft.quantities.units import shown

MOST_NAMES = 1 << 17
_MOST_DIGITS = 9
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_RANGES = re.compile(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*")


def names_of(text: str, place: str) -> list[str]:
    """Return the names of a host list in their order; several brackets make all combinations, the last the fastest.

    Raises:
        BadInputError: it is not one, has a name twice, or more than `MOST_NAMES`.
    """
    found: list[str] = []
    try:
        for item in _items(text):
            found += _expanded(item, MOST_NAMES - len(found))
    except InvalidValueError as error:
        raise BadInputError(error, place=place) from None
    seen: set[str] = set()
    for name in found:
        if name in seen:
            raise BadInputError(f"{shown(name)} is listed twice in {shown(text)}", place=place)
        seen.add(name)
    return found


def _items(text: str) -> Iterator[str]:
    """Yield the parts between commas outside of brackets."""
    depth, begin = 0, 0
    for at, sign in enumerate(text):
        depth += {"[": 1, "]": -1}.get(sign, 0)
        if depth not in (0, 1):
            break
        if sign == "," and not depth:
            yield text[begin:at]
            begin = at + 1
    if depth:
        raise InvalidValueError(f"{shown(text)} has brackets without partners", valid="a list such as n[0-31,40]")
    yield text[begin:]


def _expanded(item: str, most: int) -> list[str]:
    parts: list[list[str]] = []
    count = 1
    for number, part in enumerate(re.split(r"[\[\]]", item)):
        if number % 2:
            parts.append(_numbers(part, item, most))
        elif part:
            if not _PLAIN.fullmatch(part):
                raise InvalidValueError(
                    f"{shown(item)} is no name of hosts", valid="letters, digits, _ . - and [ranges]"
                )
            parts.append([part])
        count *= len(parts[-1]) if parts else 1
        if count > most:
            raise InvalidValueError(f"{shown(item)} makes too many names", valid=f"up to {MOST_NAMES:,} in all")
    if not parts or item.startswith("["):
        raise InvalidValueError(f"{shown(item)} is no name of hosts", valid="a name such as n[0-31,40]")
    return ["".join(each) for each in product(*parts)]


def _numbers(ranges: str, item: str, most: int) -> list[str]:
    """Return numbers as they are written: n[08-10] has n08, n09, n10."""
    if not _RANGES.fullmatch(ranges):
        raise InvalidValueError(f"[{ranges}] in {shown(item)} is no list of ranges", valid="such as [0-3,12]")
    found: list[str] = []
    for each in ranges.split(","):
        low, _, high = each.partition("-")
        high = high or low
        if max(len(low), len(high)) > _MOST_DIGITS or int(high) < int(low):
            raise InvalidValueError(
                f"{each} in {shown(item)} is no range", valid=f"LOW-HIGH, of up to {_MOST_DIGITS} digits"
            )
        if int(high) - int(low) >= most - len(found):
            raise InvalidValueError(f"{shown(item)} makes too many names", valid=f"up to {MOST_NAMES:,} in all")
        found += [f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
    return found
