"""Finds the number of processes started by mpirun, without MPI."""

from __future__ import annotations

import os

from weft.errors import EnvironmentLacksError

# Variables of Open MPI, and of MPICH and its relatives.
_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def process_count() -> int:
    """Return the number of processes from the environment; 1 without mpirun."""
    for name in _SIZE_VARIABLES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 1


def require_known_launcher() -> None:
    """Check that this is not one of several Slurm tasks that do not know each other.

    Raises:
        EnvironmentLacksError: it is, so each task would do the whole run.

    """
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "")
    if any(name in os.environ for name in _SIZE_VARIABLES):
        return
    if tasks == "1" or not (tasks.isdigit() or "PMIX_RANK" in os.environ):
        return
    raise EnvironmentLacksError(
        f"srun started {tasks or 'several'} tasks without saying so to MPI (neither {' nor '.join(_SIZE_VARIABLES)} is "
        "set), so each would do the whole run",
        valid="mpirun -n N weft run within the allocation, or srun -n 1",
    )
