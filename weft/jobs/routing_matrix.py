"""A routing matrix: tokens from each rank to each expert."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import InvalidValueError
from weft.quantities.units import shown
from weft.traffic.matrix_files import MatrixForm

MAX_TOKENS = 1 << 40


def _tokens(cell: Any) -> int:
    if type(cell) is not int or not 0 <= cell <= MAX_TOKENS:
        raise InvalidValueError(shown(cell), valid="a number of tokens from 0")
    return cell


_FORM = MatrixForm("tokens", "a row for each rank, a column for each expert", _tokens)


def given_matrix(given: Sequence[Sequence[int]] | Path) -> NDArray[np.int64]:
    """Return the matrix of shape (ranks, experts). Raises BadInputError with the file, row and column."""
    return _FORM.read(given)


def matrix_problem(matrix: NDArray[np.int64], ranks: int, experts: int, top_k: int, tokens: int) -> str | None:
    """Return why a matrix is invalid for ranks with `tokens` tokens each that choose `top_k` experts; None if valid."""
    if matrix.shape != (ranks, experts):
        rows, columns = matrix.shape
        return f"{rows} rows of {columns} (valid: {ranks} ranks that share {experts} experts)"
    for rank, expert in np.argwhere(matrix > tokens)[:1].tolist():
        return f"row {rank}, column {expert}: {matrix[rank, expert]} tokens (valid: 0 to {tokens}, which the rank has)"
    most = tokens * top_k
    for rank in np.flatnonzero(matrix.sum(axis=1) > most)[:1].tolist():
        return (
            f"row {rank}: {matrix[rank].sum()} tokens in all (valid: up to {most}, {top_k} experts for each of "
            f"{tokens} tokens)"
        )
    return None if matrix.any() else "no token goes anywhere (valid: at least one)"
