"""A rank of programs.py: all ranks but the first send to the first, at the same time, and rank 0 checks what it gets.

mpirun … mpi_incast.py BYTES_PER_SENDER: rank 0 prints a line of JSON for each sender. Times are the wall clock's.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from mpi4py import MPI

MESSAGE_BYTES = 1 << 16
UNDER_WAY = 16
DATA = 1


def data_of(rank: int) -> np.ndarray:
    """Return the message of a rank, which rank 0 knows, too."""
    return np.random.default_rng(rank).integers(0, 256, MESSAGE_BYTES, np.uint8)


def send(world: MPI.Comm, messages: int) -> None:
    """Send with several messages under way."""
    mine = data_of(world.rank)
    waiting: list[MPI.Request] = []
    for _ in range(messages):
        if len(waiting) == UNDER_WAY:
            waiting.pop(0).Wait()
        waiting.append(world.Isend(mine, 0, DATA))
    MPI.Request.Waitall(waiting)


def receive(world: MPI.Comm, messages: int) -> tuple[dict[int, float], int]:
    """Return when each sender's last message came, in seconds from now, and how many bytes were wrong."""
    expected = {rank: data_of(rank) for rank in range(1, world.size)}
    arrived, status, wrong = np.empty(MESSAGE_BYTES, np.uint8), MPI.Status(), 0
    last_s: dict[int, float] = {}
    began_s = time.perf_counter()
    for _ in range(messages * len(expected)):
        world.Recv(arrived, MPI.ANY_SOURCE, DATA, status)
        last_s[status.source] = time.perf_counter() - began_s
        wrong += int(np.count_nonzero(arrived != expected[status.source]))
    return last_s, wrong


def main(bytes_per_sender: int) -> int:
    """Run the incast; returns 1 if a byte was wrong."""
    world = MPI.COMM_WORLD
    messages = max(1, bytes_per_sender // MESSAGE_BYTES)
    # Connections are made before: the first message between two ranks makes theirs.
    if world.rank:
        world.Send(data_of(world.rank), 0, DATA)
    else:
        for _ in range(1, world.size):
            world.Recv(np.empty(MESSAGE_BYTES, np.uint8), MPI.ANY_SOURCE, DATA)
    world.Barrier()
    if world.rank:
        send(world, messages)
        return 0
    last_s, wrong = receive(world, messages)
    for rank, took_s in sorted(last_s.items()):
        print(json.dumps({"rank": rank, "bytes": messages * MESSAGE_BYTES, "seconds": took_s, "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
