"""Attributes of a Chakra node: the same name comes with different value types, depending on the trace's writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.jobs.traces.chakra.messages import INTEGERS
from weft.jobs.traces.errors import TraceError


class Attributes:
    """The attributes of a node, by name; each method reads one type."""

    def __init__(self, node: Any) -> None:
        self._attributes = {each.name: each for each in node.attr}

    def integer(self, name: str, place: str, default: int | None = None) -> int:
        """Return an integer of any type. Raises TraceError for other types, negatives, or no value and default."""
        attribute = self._attributes.get(name)
        if attribute is None:
            if default is None:
                found = ", ".join(sorted(self._attributes)) or "none"
                raise TraceError(f"attribute {name!r} is missing (there are: {found})", place=place)
            return default
        kind = attribute.WhichOneof("value")
        if kind not in INTEGERS:
            raise TraceError(f"attribute {name!r} is {_shown(kind)}", place=place, valid="an integer")
        value = int(getattr(attribute, kind))
        if value < 0:
            raise TraceError(f"attribute {name!r} is {value}", place=place, valid="0 or more")
        return value

    def flag(self, name: str, place: str) -> bool:
        """Return a flag from a bool or an integer; False if missing. Raises TraceError for other types."""
        attribute = self._attributes.get(name)
        if attribute is None:
            return False
        kind = attribute.WhichOneof("value")
        if kind != "bool_val" and kind not in INTEGERS:
            raise TraceError(f"attribute {name!r} is {_shown(kind)}", place=place, valid="a bool")
        return bool(getattr(attribute, kind))

    def text(self, name: str, place: str) -> str:
        """Return a text, or an integer's digits; "" if missing. Raises TraceError for other types."""
        attribute = self._attributes.get(name)
        if attribute is None:
            return ""
        kind = attribute.WhichOneof("value")
        if kind != "string_val" and kind not in INTEGERS:
            raise TraceError(f"attribute {name!r} is {_shown(kind)}", place=place, valid="a string")
        return str(getattr(attribute, kind))

    def numbers(self, name: str, place: str) -> Sequence[int] | None:
        """Return a list of integers; None if missing. Raises TraceError for other types."""
        attribute = self._attributes.get(name)
        if attribute is None:
            return None
        kind = attribute.WhichOneof("value")
        if kind != "uint64_list":
            raise TraceError(f"attribute {name!r} is {_shown(kind)}", place=place, valid="a uint64_list")
        values: Sequence[int] = attribute.uint64_list.values
        return values

    def __contains__(self, name: str) -> bool:
        return name in self._attributes

    def names(self) -> set[str]:
        """Return the names of all attributes."""
        return set(self._attributes)


def _shown(kind: str | None) -> str:
    return kind.removesuffix("_val") if kind else "of a type that Weft does not read"
