"""An MPI all-reduce between the hosts of a lab, verified with NumPy: docs/mpi.md has the command.

Every rank draws its vector from its own number, so that each can add up all of them by itself.
"""

from __future__ import annotations

import socket
import sys
import time

import numpy as np
from mpi4py import MPI


def main(count: int = 65536) -> int:
    """Sum a vector of int32 over all ranks; returns 1 if a rank's result is not NumPy's."""
    world = MPI.COMM_WORLD

    def vector(rank: int) -> np.ndarray:
        return np.random.default_rng(rank).integers(-1000, 1000, count, np.int32)

    mine, total = vector(world.rank), np.empty(count, np.int32)
    world.Barrier()
    start_s = time.perf_counter()
    world.Allreduce(mine, total, op=MPI.SUM)
    took_s = time.perf_counter() - start_s
    wrong = int(np.count_nonzero(total != sum(vector(rank) for rank in range(world.size))))
    names = world.gather(socket.gethostname())
    wrong_on_all = world.allreduce(wrong)
    if world.rank == 0:
        print(f"all-reduce of {total.nbytes} B over {', '.join(names)}: {wrong_on_all} wrong, {took_s:.3f} s")
    return 1 if wrong_on_all else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
