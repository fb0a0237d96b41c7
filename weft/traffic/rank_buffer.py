"""A rank's data, as a runner hands it to an endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt

RankBuffer = Path | npt.NDArray[Any]
"""A rank's data: a file that its endpoint maps, or an array of this process."""
