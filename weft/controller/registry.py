"""Kinds of a thing that are each defined by one file of a package, found by listing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from weft.registry import modules_of

_Kind = TypeVar("_Kind")


class Registry(Mapping[str, _Kind], Generic[_Kind]):
    """The kinds that a package's modules define as `KIND`, by name, in order of the modules' names.

    Args:
        package: whose modules are searched when a kind is first requested.
        kind: their class; modules without a `KIND` of this class are ignored.
        error: raised for an unknown name.

    """

    def __init__(self, package: str, kind: type[_Kind], error: type[Exception]) -> None:
        self._package = package
        self._kind = kind
        self._error = error

    @cached_property
    def _kinds(self) -> dict[str, _Kind]:
        found = (getattr(module, "KIND", None) for module in modules_of(self._package))
        return {kind.name: kind for kind in found if isinstance(kind, self._kind)}  # type: ignore[attr-defined]

    def look_again(self) -> None:
        """List the package again when a kind is next requested."""
        self.__dict__.pop("_kinds", None)

    def __getitem__(self, name: str) -> _Kind:
        try:
            return self._kinds[name]
        except KeyError:
            what = self._package.rpartition(".")[2]
            raise self._error(f"unknown {what} {name!r} (valid: {', '.join(self._kinds)})") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
