"""Names of communicators that ranks record: equal names with other ranks are other communicators."""

from __future__ import annotations

from collections.abc import Mapping


class Communicators:
    """Communicators by unique names."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, tuple[int, ...]], str] = {}
        self._ranks: dict[str, tuple[int, ...]] = {}

    @property
    def ranks(self) -> Mapping[str, tuple[int, ...]]:
        """The ranks of each, by unique name."""
        return self._ranks

    def name_of(self, name: str, ranks: tuple[int, ...]) -> str:
        """Return the unique name of a recorded communicator, which is added if it is new."""
        known = self._names.get((name, ranks))
        if known is None:
            known, number = name, 1
            while known in self._ranks:
                number += 1
                known = f"{name} ({number})"
            self._names[name, ranks] = known
            self._ranks[known] = ranks
        return known
