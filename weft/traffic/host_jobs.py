"""A host's part in a job: its operations, run natively, and when each of them was done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.engine import _core
from weft.engine.records import RunStatus
from weft.errors import InvalidValueError
from weft.traffic.answers import Memory, OperationTimes
from weft.traffic.commands.jobs import PrepareJob
from weft.traffic.commands.runs import Start
from weft.traffic.host import Host
from weft.traffic.jobs.native_job import (
    SharedParts,
    bind_job,
    buffer_name,
    buffers_of,
    channels_of,
    reduced_lengths,
    sink_bytes,
)
from weft.traffic.jobs.times import RankTimes
from weft.traffic.mapped_data import map_data
from weft.traffic.native_schedule import RemoteBuffer
from weft.traffic.schedule_nodes import SINK


class HostJob:
    """One run of a rank's part of a job."""

    def __init__(self, host: Host, command: PrepareJob) -> None:
        self._host = host
        self._command = command
        if command.provided is not None:
            self._shared, self._operations = command.provided.shared, command.provided.operations
            data = command.provided.data
        else:
            self._shared, self._operations, data = SharedParts(), _read_operations(command.operations), None
        if data is None:
            data = _map_data(command)
        self._buffers = self._buffers_over(data)
        largest = sink_bytes(command.part, self._operations, self._shared)
        self._memory = {SINK: host.nic.register_sink(max(1, largest))}
        for call, buffers in zip(command.part.calls, self._buffers, strict=True):
            for name, array in buffers.items() if call.data is not None else ():
                self._memory[buffer_name(call, name)] = host.nic.register_memory(array)
        self._job: _core.BoundJob | None = None

    def _buffers_over(self, data: NDArray[Any] | None) -> list[dict[str, NDArray[Any]]]:
        """Return the buffers of each call; of calls without data those that the network reduces, which carry zeros."""
        calls = self._command.part.calls
        return [
            reduced_lengths(self._shared.schedule(call))
            if data is None or call.data is None
            else buffers_of(call, self._shared.schedule(call), data)
            for call in calls
        ]

    def memory(self) -> Memory:
        """Return where peers write to."""
        return {name: RemoteBuffer(region.virtual_address, region.rkey) for name, region in self._memory.items()}

    def start(self, command: Start) -> None:
        """Start the run. Raises ValueError if it runs already, or for connections and memory that are missing."""
        if self._job is not None:
            raise ValueError(f"run {command.run} has been started already")
        part = self._command.part
        job = bind_job(
            replace(part, compute_scale=part.compute_scale * self._host.config.compute_scale),
            self._operations,
            self._shared,
            self._host.channels(),
            command.peers,
            self._command.payload,
            self._buffers,
            lambda job_id: self._host.reductions.aggregators(() if job_id is None else (job_id,)),
            self._command.provided.repeated if self._command.provided is not None else None,
            command.run,
        )
        self._host.executor.start(job, command.start_ps, run=command.run)
        self._job = job

    def status(self) -> RunStatus | None:
        """Return the state; its nodes are operations. None before a start."""
        return None if self._job is None else self._host.executor.status(self._command.run)

    def operation_times(self, path: str | None) -> OperationTimes:
        """Return when operations started and were done, or write it to a file, as columns `started_ps`, `finished_ps`.

        Raises ValueError before a start.
        """
        if self._job is None:
            raise ValueError(f"run {self._command.run} has not been started")
        times = RankTimes(*self._host.executor.operation_times(self._job))
        if path is None:
            return OperationTimes(self._command.run, times)
        with Path(path).open("wb") as file:
            np.savez(file, **vars(times))
        return OperationTimes(self._command.run)

    def release(self) -> None:
        """End the run if it has not ended, and release its memory; its connections go, too, unless it has finished."""
        for region in self._memory.values():
            region.deregister()
        if self._job is None:
            return
        run, executor = self._command.run, self._host.executor
        executor.cancel(run)
        if executor.status(run)["state"] != "finished":
            for channel in dict.fromkeys(channels_of(self._command.part, self._shared)):
                self._host.disconnect(channel)
            calls = self._command.part.calls
            self._host.reductions.leave_everywhere(
                call.aggregation_job for call in calls if call.aggregation_job is not None
            )
        executor.forget(run)


def _map_data(command: PrepareJob) -> NDArray[Any] | None:
    """Map the bytes of a rank's collectives, from the file that has them. Raises ValueError as `map_data`."""
    if command.data is None:
        return None
    path = Path(command.data)
    return map_data("uint8", path.stat().st_size, path, command.result)


def _read_operations(path: str | None) -> _core.JobOperations:
    """Read the columns of `Slots.engine_columns` from a NumPy archive. Raises ValueError for other contents."""
    if path is None:
        raise InvalidValueError("a job without operations", valid="the name of a file with them")
    with np.load(path, allow_pickle=False) as columns:
        try:
            return _core.JobOperations(**columns)
        except TypeError as error:
            raise ValueError(f"{path} has the columns {', '.join(columns)}: {error}") from None
