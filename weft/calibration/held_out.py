"""Which sizes a fit does not see, so that they show how well it predicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from weft.errors import BadInputError, translated
from weft.quantities.units import parse_size_range_bytes, shortest_size, shown

_SHARE = re.compile(r"1/(\d{1,3})\Z")
NONE = "none"


@dataclass(frozen=True)
class HoldOut:
    """Every `every`-th size of a table (0: none), or the `sizes` (bytes) given."""

    every: int = 3
    sizes: tuple[int, ...] = ()

    @classmethod
    def of(cls, text: str) -> HoldOut:
        """Return what `1/3`, `none` or sizes such as `64K,1M` say. Raises BadInputError."""
        if text == NONE:
            return cls(0)
        if found := _SHARE.match(text):
            if int(found[1]) < 2:
                raise BadInputError(f"{text} leaves no size to fit", place="--hold-out", valid="1/2 to 1/999")
            return cls(int(found[1]))
        with translated(ValueError, BadInputError, place=f"--hold-out {shown(text)}", valid="sizes, 1/N, none"):
            return cls(0, tuple(parse_size_range_bytes(text)))

    def of_table(self, sizes: Sequence[int]) -> set[int]:
        """Return which of a table's sizes are held out: of a share, those in the middle of each group.

        So the smallest and the largest size are fitted, and predictions lie between fitted sizes.
        """
        if self.every:
            return {
                size
                for place, size in enumerate(sizes)
                if place % self.every == self.every // 2 and 0 < place < len(sizes) - 1
            }
        return set(self.sizes) & set(sizes)

    def require_measured(self, sizes: set[int]) -> None:
        """Check that the sizes given were measured. Raises BadInputError."""
        for size in self.sizes:
            if size not in sizes:
                raise BadInputError(
                    f"{shortest_size(size)} was not measured, or is left out",
                    place="--hold-out",
                    valid=[shortest_size(each) for each in sorted(sizes)],
                )


EVERY_THIRD = HoldOut(3)
"""The default choice of sizes."""
