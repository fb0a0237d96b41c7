"""Section of an all-to-all-v on what each rank has for each."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import model_validator

from weft.errors import BadInputError, InvalidValueError
from weft.quantities.definitions import MESSAGE_SIZE, SIZE, number
from weft.quantities.example import Example
from weft.scenario.values import Section
from weft.traffic.collectives.alltoallv import AllToAllV
from weft.traffic.matrix_files import MatrixForm
from weft.traffic.pair_sizes import PairSizes

_PAIR_SIZE = SIZE.between(0, MESSAGE_SIZE.highest)


def _size(cell: Any) -> int:
    value: int = _PAIR_SIZE.read(cell)
    return value


_FORM = MatrixForm("sizes", "a row for each sender, a column for each receiver", _size)
_DEFAULT = AllToAllV.sizes


class PairsSection(Section):
    """Sizes that ranks have for each other: a matrix, or drawn with the scenario's `seed`."""

    matrix: Annotated[
        Path | list[list[Annotated[int, _PAIR_SIZE]]] | None,
        Example("[[0, 64KiB, 4KiB, 0], [4KiB, 0, 0, 64KiB], [8KiB, 8KiB, 0, 0], [0, 0, 128KiB, 0]]"),
    ] = None
    """Size from each rank (rows) to each (columns): inline, or a CSV or JSON file, relative to the scenario. Its own
    size is the largest sum of a row or column; other `sizes` scale it."""
    skew: Annotated[float | None, number(0, 10, example="0.8")] = None
    """In place of `matrix`: the i-th most popular receiver gets in proportion to i^-skew (Zipf); by default 0.2."""
    spread: Annotated[float | None, number(0, 10, example="1")] = None
    """Each pair's size is multiplied by a drawn factor with a logarithm of this standard deviation (lognormal); by
    default none."""

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Self:
        given = [name for name in ("matrix", "skew", "spread") if getattr(self, name) is not None]
        if self.matrix is not None and len(given) > 1:
            raise InvalidValueError(
                f"{' and '.join(given)} exclude each other", valid="matrix alone, or skew and spread"
            )
        return self

    @cached_property
    def given(self) -> PairSizes | None:
        """The matrix's sizes; None if they are drawn. Raises BadInputError for an invalid matrix."""
        if self.matrix is None:
            return None
        matrix = _FORM.read(self.matrix)
        try:
            sizes = PairSizes(matrix)
        except ValueError as error:
            raise BadInputError(error) from None
        MESSAGE_SIZE.check(sizes.size_bytes or 0, "the largest sum of a rank")
        return sizes

    def sizes(self, seed: int) -> PairSizes:
        """Return the sizes, drawn with a seed unless they are given. Raises BadInputError for an invalid matrix."""
        if self.given is not None:
            return self.given
        skew = _DEFAULT.skew if self.skew is None else self.skew
        spread = _DEFAULT.spread if self.spread is None else self.spread
        return PairSizes(None, skew, spread, seed)

    def check(self, ranks: int, element_bytes: int) -> None:
        """Raise BadInputError if a matrix is not of so many ranks, or not of whole elements."""
        if self.given is None or self.given.matrix is None:
            return
        matrix = self.given.matrix
        if len(matrix) != ranks:
            raise BadInputError(f"{len(matrix)} rows and columns", valid=f"{ranks}, one for each rank")
        for row, column in np.argwhere(matrix % element_bytes)[:1].tolist():
            raise BadInputError(
                f"row {row}, column {column}: {matrix[row, column]} B",
                valid=f"multiples of {element_bytes}, the size of an element",
            )
