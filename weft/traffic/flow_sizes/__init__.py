"""Distributions of flow sizes: tables of measured ones, and any other table of that form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from weft.errors import InvalidValueError

FlowSizesName = Literal["websearch", "fb_hadoop", "alibaba_storage"]
NAMES: tuple[str, ...] = get_args(FlowSizesName)


@dataclass(frozen=True)
class FlowSizes:
    """A cumulative distribution: `percents[i]` of the flows have at most `sizes_bytes[i]`, and linearly in between."""

    name: str
    sizes_bytes: tuple[float, ...]
    percents: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise ValueError unless both columns rise, from 0 percent to 100."""
        sizes, percents = self.sizes_bytes, self.percents
        if len(sizes) != len(percents) or len(sizes) < 2:
            raise InvalidValueError(
                f"{self.name}: {len(sizes)} sizes and {len(percents)} percents", valid="2 or more points"
            )
        if (percents[0], percents[-1]) != (0, 100):
            raise InvalidValueError(f"{self.name}: percents from {percents[0]:g} to {percents[-1]:g}", valid="0 to 100")
        if np.any(np.diff(percents) <= 0):
            raise ValueError(f"{self.name}: percents must rise from line to line")
        if sizes[0] < 0 or np.any(np.diff(sizes) < 0):
            raise ValueError(f"{self.name}: sizes must be 0 or more and not fall from line to line")

    @classmethod
    def from_file(cls, path: Path) -> FlowSizes:
        """Read a file of `bytes percent` lines. Raises OSError, or ValueError with the invalid line."""
        return _parse(path.stem, path.read_text(encoding="utf-8"))

    @property
    def mean_bytes(self) -> float:
        """Return the mean size."""
        sizes = np.asarray(self.sizes_bytes)
        return float(np.sum(np.diff(self.percents) * (sizes[1:] + sizes[:-1])) / 200)

    def quantile_bytes(self, shares: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the sizes that so many of the flows (0 to 1) do not exceed, at least 1 byte: the inverse CDF."""
        sizes = np.interp(np.asarray(shares) * 100, self.percents, self.sizes_bytes)
        return np.asarray(np.maximum(1, np.rint(sizes)), dtype=np.int64)


@cache
def flow_sizes(name: str) -> FlowSizes:
    """Return the distribution of that name. Raises ValueError naming the valid ones."""
    if name not in NAMES:
        raise InvalidValueError(f"unknown flow sizes {name!r}", valid=NAMES)
    return _parse(name, resources.files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8"))


def _parse(name: str, text: str) -> FlowSizes:
    points = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        try:
            size, percent = map(float, words)
        except ValueError:
            raise ValueError(f"{name}, line {number}: '{line}' is not a pair of bytes and percent") from None
        points.append((size, percent))
    return FlowSizes(name, tuple(size for size, _ in points), tuple(percent for _, percent in points))
