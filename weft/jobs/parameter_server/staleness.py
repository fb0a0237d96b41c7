"""How stale the weights were that workers computed with, by two measures.

Both count each server separately, and look at its shard when it began to send it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from weft.jobs.parameter_server.job import ServerTimes
from weft.quantities.arrays import Integers


def clock_lags(times: ServerTimes) -> Counter[int]:
    """Return how often each lag occurred: the reader's steps minus the slowest worker's steps in the weights read.

    This is the clock differential of Ho et al. 2013, section 2; with staleness s it is at most s.
    """
    _, steps, servers = times.answered_ps.shape
    clocks = np.arange(1, steps + 1)
    lags = Counter[int]()
    for server in range(servers):
        read_ps = times.answered_ps[..., server]
        least = np.full(read_ps.shape, steps, np.int64)
        for applied_ps in _applied(times, server):
            np.minimum(least, np.searchsorted(applied_ps, read_ps, side="right"), out=least)
        lags.update((clocks - least).ravel().tolist())
    return lags


def update_staleness(times: ServerTimes) -> Counter[int]:
    """Return how often each staleness occurred: updates between the read of weights and the update computed from them.

    This is the staleness of asynchronous gradients of Zhang et al. 2016 ("Staleness-aware async-SGD", section 2). A
    synchronous server's update by a sum counts as one.
    """
    workers, steps, servers = times.answered_ps.shape
    found = Counter[int]()
    for server in range(servers):
        # The first step is computed with the initial weights.
        read_ps = np.concatenate([np.full((workers, 1), -1, np.int64), times.answered_ps[:, :-1, server]], axis=1)
        if times.applied_ps is not None:
            changes_ps = times.applied_ps[:, server]
            place = np.broadcast_to(np.arange(steps), (workers, steps))
        else:
            own_ps = times.updated_ps[..., server]
            # In the order of the replay: by worker at the same time.
            order = np.argsort(own_ps, axis=None, kind="stable")
            changes_ps = own_ps.ravel()[order]
            place = np.empty(own_ps.size, np.int64)
            place[order] = np.arange(own_ps.size)
            place = place.reshape(own_ps.shape)
        seen = np.searchsorted(changes_ps, read_ps, side="right")
        found.update((place - seen).ravel().tolist())
    return found


def _applied(times: ServerTimes, server: int) -> list[Integers]:
    """Return when each worker's steps were applied to a server's weights, in order."""
    if times.applied_ps is not None:
        return [times.applied_ps[:, server]]
    return list(times.updated_ps[..., server])
