"""How many processes mpirun has started, without MPI."""

from __future__ import annotations

import os

# Open MPI's, and that of MPICH and its relatives.
_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def process_count() -> int:
    """Return how many there are, by the environment; 1 without mpirun."""
    for name in _SIZE_VARIABLES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 1
