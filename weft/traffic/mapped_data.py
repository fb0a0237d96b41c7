"""A rank's data in a file, mapped for work in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.errors import InvalidValueError


def map_data(dtype: str, count: int, source: Path, result: str | None) -> npt.NDArray[Any]:
    """Map elements for work in place: in `source` itself, or in a copy of it in the file `result`.

    Raises ValueError for a source that is too short.
    """
    if count == 0:
        return np.empty(0, dtype)
    wanted_bytes = count * np.dtype(dtype).itemsize
    if source.stat().st_size < wanted_bytes:
        raise InvalidValueError(f"{source} has {source.stat().st_size} bytes", valid=f"at least {wanted_bytes}")
    if result is None:
        return np.memmap(source, dtype, "r+", shape=(count,))
    data = np.memmap(result, dtype, "w+", shape=(count,))
    data[:] = np.memmap(source, dtype, "r", shape=(count,))
    return data


RankBuffer = Path | npt.NDArray[Any]
"""A rank's data: a file that its endpoint maps, or an array of this process."""
