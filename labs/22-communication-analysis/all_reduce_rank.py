"""A rank of real_programs.py: all-reduces of int32 by MPI or by Gloo, timed and compared with NumPy's.

    all_reduce_rank.py {mpi|gloo} SIZE_BYTES REPETITIONS [SIZE_BYTES REPETITIONS …]

mpirun tells ranks of MPI who they are; those of Gloo have RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in their
environment, as torchrun gives them. Rank 0 prints a line of JSON for each size. A run's time is that of the rank that
took longest, after a barrier.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from typing import Protocol

import numpy as np

Vector = np.ndarray[tuple[int], np.dtype[np.int32]]

ELEMENT_BYTES = 4
WARMUP_RUNS = 1
"""Runs that make connections; they do not count."""
GLOO_TIMEOUT = timedelta(minutes=5)


class World(Protocol):
    """All ranks, as one of them sees them."""

    rank: int
    size: int

    def barrier(self) -> None:
        """Wait for all."""

    def all_reduce(self, vector: Vector) -> Vector:
        """Return the sum of all ranks' vectors."""

    def largest(self, value: float) -> float:
        """Return the largest of all ranks' values."""


class Mpi:
    """Ranks of MPI."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._world.rank, self._world.size

    def barrier(self) -> None:
        """Wait for all."""
        self._world.Barrier()

    def all_reduce(self, vector: Vector) -> Vector:
        """Return the sum of all ranks' vectors."""
        total = np.empty_like(vector)
        self._world.Allreduce(vector, total, op=self._mpi.SUM)
        return total

    def largest(self, value: float) -> float:
        """Return the largest of all ranks' values."""
        return float(self._world.allreduce(value, op=self._mpi.MAX))


class Gloo:
    """Ranks of PyTorch's Gloo."""

    def __init__(self) -> None:
        import torch
        import torch.distributed as dist

        self._torch, self._dist = torch, dist
        dist.init_process_group("gloo", timeout=GLOO_TIMEOUT)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def barrier(self) -> None:
        """Wait for all."""
        self._dist.barrier()

    def all_reduce(self, vector: Vector) -> Vector:
        """Return the sum of all ranks' vectors, which it writes over this one."""
        self._dist.all_reduce(self._torch.from_numpy(vector))
        return vector

    def largest(self, value: float) -> float:
        """Return the largest of all ranks' values."""
        tensor = self._torch.tensor([value], dtype=self._torch.float64)
        self._dist.all_reduce(tensor, op=self._dist.ReduceOp.MAX)
        return float(tensor[0])


WORLDS: dict[str, type[World]] = {"mpi": Mpi, "gloo": Gloo}


def vector(rank: int, elements: int) -> Vector:
    """Return a rank's data."""
    return np.random.default_rng(rank).integers(-1000, 1000, elements, np.int32)


def measured(world: World, size_bytes: int, repetitions: int) -> dict[str, object]:
    """Return the seconds of each run, and how many elements were wrong at most on a rank."""
    elements = size_bytes // ELEMENT_BYTES
    expected = sum(vector(rank, elements) for rank in range(world.size))
    times_s, wrong = [], 0
    for _ in range(WARMUP_RUNS + repetitions):
        mine = vector(world.rank, elements)
        world.barrier()
        began_s = time.perf_counter()
        total = world.all_reduce(mine)
        took_s = time.perf_counter() - began_s
        times_s.append(world.largest(took_s))
        wrong += int(np.count_nonzero(total != expected))
    return {
        "size_bytes": size_bytes,
        "ranks": world.size,
        "times_s": times_s[WARMUP_RUNS:],
        "wrong": int(world.largest(wrong)),
    }


def main(kind: str, arguments: list[int]) -> None:
    """Measure all sizes."""
    world = WORLDS[kind]()
    for size_bytes, repetitions in zip(arguments[::2], arguments[1::2], strict=True):
        found = measured(world, size_bytes, repetitions)
        if world.rank == 0:
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [int(each) for each in sys.argv[2:]])
