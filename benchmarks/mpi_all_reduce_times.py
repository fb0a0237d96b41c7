"""What bench_mpi_over_tcp.py has mpirun start on each host: all-reduces of int32, timed and compared with NumPy's.

    mpi_all_reduce_times.py SIZE_BYTES REPETITIONS [SIZE_BYTES REPETITIONS …]

Rank 0 prints a line of JSON for each size. A run's time is that of the rank that took longest, after a barrier.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from mpi4py import MPI

ELEMENT_BYTES = 4
WARMUP_RUNS = 1
"""Runs that make connections; they do not count."""


def vector(rank: int, elements: int) -> np.ndarray:
    """Return a rank's data."""
    return np.random.default_rng(rank).integers(-1000, 1000, elements, np.int32)


def measured(world: MPI.Comm, size_bytes: int, repetitions: int) -> dict[str, object]:
    """Return the seconds of each run, and how many elements were wrong on all ranks together."""
    elements = size_bytes // ELEMENT_BYTES
    mine, total = vector(world.rank, elements), np.empty(elements, np.int32)
    expected = sum(vector(rank, elements) for rank in range(world.size))
    times_s, wrong = [], 0
    for _ in range(WARMUP_RUNS + repetitions):
        world.Barrier()
        began_s = time.perf_counter()
        world.Allreduce(mine, total, op=MPI.SUM)
        took_s = time.perf_counter() - began_s
        times_s.append(world.allreduce(took_s, op=MPI.MAX))
        wrong += int(np.count_nonzero(total != expected))
    return {
        "size_bytes": size_bytes,
        "ranks": world.size,
        "times_s": times_s[WARMUP_RUNS:],
        "wrong": world.allreduce(wrong),
    }


def main(arguments: list[int]) -> None:
    """Measure all sizes."""
    world = MPI.COMM_WORLD
    for size_bytes, repetitions in zip(arguments[::2], arguments[1::2], strict=True):
        found = measured(world, size_bytes, repetitions)
        if world.rank == 0:
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]])
