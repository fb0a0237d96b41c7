"""Finds tables, actions and other objects of a program by full name or by its last parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from finsy.proto import p4i

from weft.controller.errors import CommandError
from weft.hints import did_you_mean


class _Named(Protocol):
    @property
    def preamble(self) -> p4i.Preamble: ...


_Object = TypeVar("_Object", bound=_Named)


def find(objects: Iterable[_Object], name: str, what: str) -> _Object:
    """Return an object by its full name, `MyIngress.ipv4_lpm`, or its last parts, `ipv4_lpm`.

    Raises:
        CommandError: there is none, or several match; the message lists valid names.

    """
    among = list(objects)
    exact = [each for each in among if each.preamble.name == name]
    found = exact or [each for each in among if each.preamble.name.endswith(f".{name}")]
    if len(found) > 1:
        raise CommandError(f"{what} {name!r} is one of several", valid=_names(found))
    if not found:
        names = _names(among)
        short = [each.rpartition(".")[2] for each in names]
        hint = did_you_mean(name[:80], [*names, *short]) if names else "the program has none"
        raise CommandError(f"unknown {what} {name[:80]!r}; {hint}")
    return found[0]


def _names(objects: Sequence[_Named]) -> list[str]:
    return [each.preamble.name for each in objects]
