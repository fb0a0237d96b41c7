"""Types of arrays of quantities: one value each for many packets, operations or samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
"""Counts, bytes, or times in picoseconds."""
Floats = NDArray[np.float64]
