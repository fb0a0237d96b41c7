"""Latency of commands in a run, and its breakdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.jobs.storage.commands import Commands
from weft.jobs.storage.loads import StorageJob
from weft.quantities.arrays import Integers
from weft.traffic.jobs import Job, RankTimes
from weft.traffic.jobs.times import ready_ps

_NONE = -1


@dataclass(frozen=True, eq=False)
class CommandTimes:
    """Times of each command, in ps; the parts add up to the latency.

    Attributes:
        latency: from when the client could issue it to the last of response, data and copy.
        device: access and transfer of the device.
        device_queue: wait for the device's channel and interface.
        host_copy: copy between host and accelerator, including the wait for earlier copies.
        network: the rest: capsules, data, and waits for links.
        end_ps: end of the last command.
    """

    latency: Integers
    device: Integers
    device_queue: Integers
    host_copy: Integers
    network: Integers
    end_ps: int


def command_times(job: Job, commands: Commands, times: Sequence[RankTimes]) -> CommandTimes:
    """Return the times of a job's commands in a run."""
    columns = _Columns(job, times)
    issued = columns.of(columns.ready, commands.client, commands.first)
    ends = [columns.of(columns.finished, commands.client, each) for each in (commands.end, commands.other_end)]
    ended = np.maximum(*ends)
    latency = ended - issued
    device, queue = np.zeros(len(commands), np.int64), np.zeros(len(commands), np.int64)
    for stage in (commands.access, commands.transfer):
        started = columns.of(columns.started, commands.node, stage)
        device += columns.of(columns.finished, commands.node, stage) - started
        queue += started - columns.of(columns.ready, commands.node, stage)
    copied = commands.copy != _NONE
    copy = np.zeros(len(commands), np.int64)
    client, operation = commands.client[copied], commands.copy[copied]
    copy[copied] = columns.of(columns.finished, client, operation) - columns.of(columns.ready, client, operation)
    return CommandTimes(latency, device, queue, copy, latency - device - queue - copy, int(ended.max()))


def waiting_ps(storage: StorageJob, times: Sequence[RankTimes]) -> list[int]:
    """Return how long each client's computations waited for their batches in total."""
    found = []
    for client, computations in enumerate(storage.computations):
        rows = np.array(computations, np.int64)
        started, finished = times[client].started_ps[rows], times[client].finished_ps[rows]
        before = np.concatenate([[0], finished[:-1]]) if len(rows) else started
        found.append(int((started - before).sum()))
    return found


class _Columns:
    """Times of all ranks' operations, concatenated in order of ranks."""

    def __init__(self, job: Job, times: Sequence[RankTimes]) -> None:
        self._bases = np.cumsum([0, *(len(part.operations) for part in job.parts)])
        self.started = np.concatenate([each.started_ps for each in times])
        self.finished = np.concatenate([each.finished_ps for each in times])
        self.ready = np.concatenate(
            [ready_ps(part.operations, each) for part, each in zip(job.parts, times, strict=True)]
        )

    def of(self, column: Integers, ranks: Integers, operations: Integers) -> Integers:
        """Return a column's values for operations of ranks."""
        return column[self._bases[ranks] + operations]
