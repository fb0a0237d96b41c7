"""Parses the items that scenarios name for sampling over time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from weft.errors import Refusal

ITEM = r"([^\s\[\]]{1,256})(?:\[([0-9]{1,9})(?:\.\.([0-9]{1,9}))?\])?"
"""Syntax of an item: `NAME`, `NAME[3]`, `NAME[0..7]`."""


class SeriesError(Refusal, ValueError):
    """An item that no program has, or that has no such cells."""


@dataclass(frozen=True)
class Item:
    """Objects by name or pattern, and the first and last cell for arrays (None: all)."""

    pattern: str
    cells: tuple[int, int] | None = None

    @classmethod
    def read(cls, text: str) -> Item:
        """Read `NAME`, `NAME[3]` or `NAME[0..7]` that matches ITEM. Raises SeriesError if it ends before it begins."""
        found = re.fullmatch(ITEM, text)
        assert found is not None
        pattern, first, last = found.groups()
        if first is None:
            return cls(pattern)
        cells = int(first), int(last or first)
        if cells[1] < cells[0]:
            raise SeriesError(f"'{text}': the last cell is before the first")
        return cls(pattern, cells)

    def names(self, names: Iterable[str]) -> list[str]:
        """Return the matching names, in full or without the part before a dot; `*` and `?` are wildcards."""
        wanted = (self.pattern, f"*.{self.pattern}")
        return [name for name in names if any(fnmatchcase(name, pattern) for pattern in wanted)]
