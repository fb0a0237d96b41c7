"""Distributions of flow sizes: tables of measured ones, and any other table of that form."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from weft.errors import InvalidValueError
from weft.quantities.limits import MAX_FLOW_BYTES
from weft.quantities.units import shown

FlowSizesName = Literal["websearch", "fb_hadoop", "alibaba_storage"]
NAMES: tuple[str, ...] = get_args(FlowSizesName)
MAX_FILE_BYTES = 1024 * 1024


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
        """Read a file of `bytes percent` lines; # begins a comment. Raises OSError, or ValueError with the line."""
        # Reading a device or pipe may never end, or never begin.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError(f"{path} is not a file")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise InvalidValueError(f"{path} is too large for a distribution", valid=f"up to {MAX_FILE_BYTES:,} B")
        return _parse(path.stem, content.decode("utf-8-sig", "replace"), str(path))

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
    return _parse(name, resources.files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8"), name)


def _parse(name: str, text: str, place: str) -> FlowSizes:
    points: list[tuple[float, float]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{place}, line {number}"
        try:
            size, percent = map(float, words)
        except ValueError:
            raise ValueError(f"{where}: {shown(line)} is not a pair of bytes and percent") from None
        # Not a number is in no range.
        if not 0 <= size <= MAX_FLOW_BYTES:
            raise InvalidValueError(f"{where}: {shown(words[0])} bytes", valid=f"0 to {MAX_FLOW_BYTES}")
        if not 0 <= percent <= 100:
            raise InvalidValueError(f"{where}: {shown(words[1])} percent", valid="0 to 100")
        if points and size < points[-1][0]:
            raise InvalidValueError(
                f"{where}: {size:g} bytes", valid=f"{points[-1][0]:g} or more, as in the line before"
            )
        if points and percent <= points[-1][1]:
            raise InvalidValueError(
                f"{where}: {percent:g} percent", valid=f"above {points[-1][1]:g}, as in the line before"
            )
        points.append((size, percent))
    try:
        return FlowSizes(name, tuple(size for size, _ in points), tuple(percent for _, percent in points))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
