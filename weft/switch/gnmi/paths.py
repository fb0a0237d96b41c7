"""Which leaves a gNMI path selects: containers, wildcards in elements and keys, prefixes and origins.

Source: gNMI's specification and path conventions (github.com/openconfig/reference, rpc/gnmi).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from finsy.proto import gnmi

from weft.switch.gnmi.errors import GnmiError, shown
from weft.switch.gnmi.leaves import LEAVES, OPENCONFIG, ORIGINS, Filters, Leaf, Step

MAX_ELEMENTS = 32
"""Longest path, with its prefix; no leaf's path has half as many elements."""
_LONGEST_LEAF = max(len(leaf.steps) for leaf in LEAVES)
_ANY, _ANY_NUMBER = "*", "..."
_Element = tuple[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Selection:
    """A leaf with the wanted values of its keys; `origin` is as the client wrote it, and stands in the answer."""

    leaf: Leaf
    wanted: Filters
    origin: str


def select(path: gnmi.Path, prefix: gnmi.Path | None = None) -> tuple[Selection, ...]:
    """Return the leaves that a path selects after a prefix, in the order of their declaration.

    Raises GnmiError if the path is malformed, or no leaf can have it; the message names the valid elements.
    """
    given = gnmi.Path() if prefix is None else prefix
    for each in (given, path):
        if each.element:
            raise GnmiError("the path has `element`, which gNMI has replaced by `elem`")
    if path.target and path is not prefix:
        raise GnmiError(f"the path has the target {shown(path.target)}; a target stands in the prefix")
    if path.origin and given.origin:
        raise GnmiError("both the prefix and a path have an origin")
    origin = path.origin or given.origin
    if origin and origin not in ORIGINS:
        raise GnmiError(f"unknown origin {shown(origin)}", valid=ORIGINS)
    count = len(given.elem) + len(path.elem)
    if count > MAX_ELEMENTS:
        raise GnmiError(f"a path of {count} elements", valid=f"at most {MAX_ELEMENTS}")
    elements: list[_Element] = [(each.name, dict(each.key)) for part in (given, path) for each in part.elem]
    leaves = [leaf for leaf in LEAVES if leaf.origin == (origin or OPENCONFIG)]
    found: dict[tuple[Leaf, Filters], Selection] = {}
    for expanded in _expanded(elements):
        for leaf in leaves:
            wanted = _match(leaf.steps, expanded)
            if wanted is not None:
                found.setdefault((leaf, wanted), Selection(leaf, wanted, origin))
    if not found:
        raise _nothing(leaves, elements)
    order = {leaf: place for place, leaf in enumerate(leaves)}
    return tuple(sorted(found.values(), key=lambda each: order[each.leaf]))


def _expanded(elements: Sequence[_Element]) -> Iterator[list[_Element]]:
    """Yield the path with `...` replaced by each number of `*` that a leaf's path has room for."""
    places = [place for place, (name, _) in enumerate(elements) if name == _ANY_NUMBER]
    if not places:
        yield list(elements)
        return
    if len(places) > 1:
        raise GnmiError(f"a path has {len(places)} elements '...'", valid="at most one")
    if elements[places[0]][1]:
        raise GnmiError("the element '...' has keys")
    before, after = elements[: places[0]], elements[places[0] + 1 :]
    for count in range(_LONGEST_LEAF + 1):
        any_element: _Element = (_ANY, {})
        yield [*before, *[any_element] * count, *after]


def _match(steps: Sequence[Step], elements: Sequence[_Element]) -> Filters | None:
    """Return the wanted key values if the elements are the beginning of a leaf's path, or all of it."""
    if len(elements) > len(steps):
        return None
    wanted: list[str | None] = []
    for place, step in enumerate(steps):
        keys: dict[str, str] = {}
        if place < len(elements):
            name, keys = elements[place]
            if name not in (_ANY, step.name) or not keys.keys() <= {step.key}:
                return None
        if step.key is not None:
            value = keys.get(step.key, _ANY)
            wanted.append(None if value == _ANY else value)
    return tuple(wanted)


def _nothing(leaves: Sequence[Leaf], elements: Sequence[_Element]) -> GnmiError:
    """Return the error of a path that no leaf has: its first wrong element, and the valid ones there."""
    if any(name == _ANY_NUMBER for name, _ in elements):
        return GnmiError("no leaf has this path with '...'")
    for place, (name, keys) in enumerate(elements):
        if not any(_match(leaf.steps, elements[: place + 1]) is not None for leaf in leaves):
            candidates = [leaf for leaf in leaves if _match(leaf.steps, elements[:place]) is not None]
            valid = {str(leaf).split("/")[place + 1]: None for leaf in candidates if place < len(leaf.steps)}
            text = name + "".join(f"[{key}={value}]" for key, value in sorted(keys.items()))
            return GnmiError(f"element {place + 1} of the path is {shown(text)}", valid=", ".join(valid) or "none")
    raise AssertionError("some element matches no leaf")
