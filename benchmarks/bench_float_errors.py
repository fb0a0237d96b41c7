"""Errors of sums of 16-bit floats: as integers of 32 bits, of 16 bits, and by a ring; bold is what the network uses.

    .venv/bin/python benchmarks/bench_float_errors.py

Values are normally distributed. Each figure is the root mean square of the error, in units of the exact sum's standard
deviation, and the share of sums that are not the exact sum rounded once. The table is that of docs/spec/aggregation.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from weft.engine import _core
from weft.traffic.data_types import DataType, elements_of, numbers

BLOCKS, BLOCK_ELEMENTS = 2000, 64
RANKS = (2, 8, 16, 64, 128, 512)


def in_lanes(values: list[NDArray[np.float64]], lane_bits: int) -> NDArray[np.float64]:
    """Return the sums of block floating point in lanes of so many bits, before they become floats."""
    ranks = len(values)
    largest = np.max(np.abs(values), axis=0).reshape(-1, BLOCK_ELEMENTS).max(axis=1)
    headroom_bits = math.ceil(math.log2(ranks if ranks <= 128 else ranks + 1))
    exponents = np.frexp(largest)[1] - (lane_bits - 1) + headroom_bits
    quantum = np.repeat(np.ldexp(1.0, exponents), BLOCK_ELEMENTS)
    return np.asarray(sum(np.rint(each / quantum) for each in values) * quantum)


def main() -> None:
    """Print the table."""
    generator = np.random.default_rng(1)
    print("| type | ranks | 32 bits | 16 bits | ring |\n|---|---|---|---|---|")
    for dtype in (DataType.FLOAT16, DataType.BFLOAT16):
        for ranks in RANKS:
            inputs = [elements_of(generator.standard_normal(BLOCKS * BLOCK_ELEMENTS), dtype) for _ in range(ranks)]
            values = [numbers(each, dtype).astype(np.float64) for each in inputs]
            exact = np.sum(values, axis=0)
            once = numbers(elements_of(exact, dtype), dtype)
            ring = inputs[0].copy()
            for each in inputs[1:]:
                _core.combine_elements(ring, each, dtype.value, "sum")
            results = [elements_of(in_lanes(values, lane_bits), dtype) for lane_bits in (32, 16)]
            cells = []
            in_use = _core.LaneEncoding(dtype.value, "sum", ranks).elements_per_lane - 1
            for place, result in enumerate((*results, ring)):
                found = numbers(result, dtype)
                error = math.sqrt(float(np.mean((found - exact) ** 2)) / ranks)
                cell = f"{error:.1e} ({np.mean(found != once):.1%})"
                cells.append(f"**{cell}**" if place == in_use else cell)
            print(f"| {dtype} | {ranks} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
