"""Latency, bandwidth and all-reduces of MPI by message size, as the OSU micro-benchmarks measure them; data is checked.

mpirun … examples/mpi_sizes.py [SIZE …]: ranks 0 and 1 measure latency and bandwidth, all ranks the all-reduces.
docs/mpi.md has the command. Times are the wall clock's.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from mpi4py import MPI

SIZES_BYTES = (4, 1024, 65536)
REPETITIONS = 10
WINDOW = 16
"""Messages under way in the measurement of bandwidth (osu_bw has 64)."""
_DATA, _ACKNOWLEDGEMENT = 1, 2

WORLD = MPI.COMM_WORLD


def data_of(rank: int, size_bytes: int) -> np.ndarray:
    """Return what a rank sends, which every other rank knows, too."""
    return np.random.default_rng([rank, size_bytes]).integers(0, 256, size_bytes, np.uint8)


def latency(size_bytes: int) -> tuple[float, int]:
    """Return seconds from rank 0 to rank 1, half of a round trip's, and how many bytes arrived wrong here."""
    peer = 1 - WORLD.rank
    mine, theirs, arrived = data_of(WORLD.rank, size_bytes), data_of(peer, size_bytes), np.empty(size_bytes, np.uint8)
    wrong, took_s = 0, 0.0
    for repetition in range(-1, REPETITIONS):  # the first one warms up
        arrived[:] = 0
        start_s = time.perf_counter()
        if WORLD.rank == 0:
            WORLD.Send(mine, peer, _DATA)
        WORLD.Recv(arrived, peer, _DATA)
        took_s += (time.perf_counter() - start_s) * (repetition >= 0)
        if WORLD.rank == 1:
            WORLD.Send(mine, peer, _DATA)
        wrong += int(np.count_nonzero(arrived != theirs))
    return took_s / REPETITIONS / 2, wrong


def bandwidth(size_bytes: int) -> tuple[float, int]:
    """Return bytes in a second from rank 0 to rank 1, and how many of them arrived wrong here."""
    mine, arrived = data_of(0, size_bytes), np.zeros((WINDOW, size_bytes), np.uint8)
    nothing, wrong = np.empty(0, np.uint8), 0
    start_s = time.perf_counter()
    for _ in range(REPETITIONS):
        if WORLD.rank == 0:
            MPI.Request.Waitall([WORLD.Isend(mine, 1, _DATA) for _ in range(WINDOW)])
            WORLD.Recv(nothing, 1, _ACKNOWLEDGEMENT)
        else:
            MPI.Request.Waitall([WORLD.Irecv(each, 0, _DATA) for each in arrived])
            wrong += int(np.count_nonzero(arrived != mine))
            arrived[:] = 0
            WORLD.Send(nothing, 0, _ACKNOWLEDGEMENT)
    return WINDOW * REPETITIONS * size_bytes / (time.perf_counter() - start_s), wrong


def all_reduce(size_bytes: int) -> tuple[float, int]:
    """Return seconds of an all-reduce of int32 over all ranks, and how many elements differ from NumPy's sums here."""
    vectors = [data_of(rank, size_bytes // 4).astype(np.int32) for rank in range(WORLD.size)]
    total, wrong = np.empty(size_bytes // 4, np.int32), 0
    took_s = 0.0
    for _ in range(REPETITIONS):
        WORLD.Barrier()
        start_s = time.perf_counter()
        WORLD.Allreduce(vectors[WORLD.rank], total, op=MPI.SUM)
        took_s += time.perf_counter() - start_s
        wrong += int(np.count_nonzero(total != sum(vectors)))
    return took_s / REPETITIONS, wrong


def main(sizes_bytes: tuple[int, ...]) -> int:
    """Print a line for each size; returns 1 if anything arrived wrong."""
    wrong_on_all = 0
    for size_bytes in sizes_bytes:
        (one_way_s, wrong), (rate, wrong_too) = (
            (latency(size_bytes), bandwidth(size_bytes)) if WORLD.rank < 2 else ((0.0, 0), (0.0, 0))
        )
        reduced_s, wrong_sums = all_reduce(size_bytes)
        wrong_here = wrong + wrong_too + wrong_sums
        wrong_on_all += WORLD.allreduce(wrong_here)
        if WORLD.rank == 0:
            print(
                f"{size_bytes:>8} B: latency {one_way_s * 1e6:10.1f} us, bandwidth {rate / 1e6:8.2f} MB/s, "
                f"all-reduce {reduced_s * 1e6:10.1f} us"
            )
    if WORLD.rank == 0:
        print(f"{WORLD.size} ranks, {wrong_on_all} wrong")
    return 1 if wrong_on_all else 0


if __name__ == "__main__":
    sys.exit(main(tuple(map(int, sys.argv[1:])) or SIZES_BYTES))
