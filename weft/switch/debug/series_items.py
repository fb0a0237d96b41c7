"""How scenarios name what of a switch is sampled over time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

ITEM = r"([^\s\[\]]{1,256})(?:\[([0-9]{1,9})(?:\.\.([0-9]{1,9}))?\])?"
"""What an item is written as: `NAME`, `NAME[3]`, `NAME[0..7]`."""


class SeriesError(ValueError):
    """An item that no program has, or that has no such cells."""


@dataclass(frozen=True)
class Item:
    """What a user asks for: objects by name or pattern, and of arrays the first and the last cell (None: all)."""

    pattern: str
    cells: tuple[int, int] | None = None

    @classmethod
    def read(cls, text: str) -> Item:
        """Read `NAME`, `NAME[3]` or `NAME[0..7]`, of checked form. SeriesError: it ends before it begins."""
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
        """Those of the names that are meant: in full, or without what is before a dot; `*` and `?` stand for others."""
        wanted = (self.pattern, f"*.{self.pattern}")
        return [name for name in names if any(fnmatchcase(name, pattern) for pattern in wanted)]
