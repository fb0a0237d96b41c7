"""Lists of a graph's switches, hosts and links, and the name patterns that connect them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import TypeVar

from weft.errors import translated
from weft.topologies.builder import role_letter
from weft.topologies.errors import TopologyError
from weft.topologies.link_choice import LinkChoice

_MOST_SHOWN = 8
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Switches:
    """Switches of one role; None means the role's default."""

    role: str
    count: int = 1
    tier: int | None = None
    letter: str | None = None


@dataclass(frozen=True)
class Hosts:
    """Hosts with a NIC at each switch in `on`, or `count` hosts at each switch that its pattern matches."""

    on: str
    count: int = 1
    rate_bps: float | None = None


@dataclass(frozen=True)
class Links:
    """Parallel links between two switches, or between all pairs of two patterns; None means the fabric's figure."""

    ends: str
    count: int = 1
    rate_bps: float | None = None
    delay_ps: int | None = None
    queue_capacity_bytes: int | None = None


def item_of(kind: Callable[..., _Item], given: _Item | Mapping[str, object], place: str) -> _Item:
    """Return an item of a list; a mapping, the form in which results store it, is converted."""
    if not isinstance(given, Mapping):
        return given
    valid = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    if unknown := sorted(given.keys() - set(valid)):
        raise TopologyError(f"unknown key {unknown[0]!r}", place=place, valid=valid)
    with translated(TypeError, TopologyError, place=place):
        return kind(**given)


def names_of(switches: Sequence[Switches]) -> list[str]:
    """Return the names of a plane's switches, without the plane's prefix."""
    counts: dict[str, int] = {}
    names = []
    for each in switches:
        letter = each.letter or role_letter(each.role)
        first = counts.get(each.role, 0)
        counts[each.role] = first + each.count
        names += [f"{letter}{index}" for index in range(first, first + each.count)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        roles = sorted(
            {each.role for each in switches if (each.letter or role_letter(each.role)) == twice.rstrip("0123456789")}
        )
        raise TopologyError(f"{twice} is a switch of several roles, {', '.join(roles)}: give them letters")
    return names


def _matching(pattern: str, names: Sequence[str], place: str) -> list[str]:
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        shown = ", ".join(names[:_MOST_SHOWN]) + (f", … {names[-1]}" if len(names) > _MOST_SHOWN else "")
        raise TopologyError(f"no switch is named {pattern!r}", place=place, valid=shown)
    return found


def places_of(on: str, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return, for each place that an attachment names, the switches of a host there."""
    several = on.split("+")
    if len(several) == 1:
        return [(name,) for name in _matching(on, names, f"hosts on {on}")]
    found = [_matching(each, names, f"hosts on {on}") for each in several]
    for pattern, matching in zip(several, found, strict=True):
        if len(matching) > 1:
            raise TopologyError(f"hosts on {on}: {pattern!r} names {len(matching)} switches", valid="one at each NIC")
    return [tuple(matching[0] for matching in found)]


def pairs_of(ends: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of switches that a link pattern matches, each once, first end first."""
    try:
        choice = LinkChoice.parse(ends)
    except ValueError as error:
        raise TopologyError(error, place="links") from None
    place = f"links {ends}"
    first, second = (_matching(each, names, place) for each in (choice.sender, choice.receiver))
    order = {name: number for number, name in enumerate(names)}
    found = dict.fromkeys((a, b) if order[a] < order[b] else (b, a) for a in first for b in second if a != b)
    if not found:
        raise TopologyError("joins no two switches", place=place, valid="two different ones")
    return list(found)
