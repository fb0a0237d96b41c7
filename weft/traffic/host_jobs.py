"""A host's part in a job: its operations, run natively, and when each of them was done."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from weft.engine import _core
from weft.engine.records import RunStatus
from weft.traffic.answers import Memory, OperationTimes
from weft.traffic.commands import PrepareJob, Start
from weft.traffic.host import Host
from weft.traffic.jobs.native_job import SharedParts, bind_job, channels_of, sink_bytes
from weft.traffic.jobs.times import RankTimes
from weft.traffic.native_schedule import RemoteBuffer
from weft.traffic.schedule_nodes import SINK


class HostJob:
    """One run of a rank's part of a job."""

    def __init__(self, host: Host, command: PrepareJob) -> None:
        self._host = host
        self._command = command
        if command.provided is not None:
            self._shared, self._operations = command.provided.shared, command.provided.operations
        else:
            self._shared, self._operations = SharedParts(), _read_operations(command.operations)
        largest = sink_bytes(command.part, self._operations, self._shared)
        self._sink = host.nic.register_sink(max(1, largest))
        self._job: _core.BoundJob | None = None

    def memory(self) -> Memory:
        """Return where peers write to."""
        return {SINK: RemoteBuffer(self._sink.virtual_address, self._sink.rkey)}

    def start(self, command: Start) -> None:
        """Start the run. Raises ValueError if it runs already, or for connections and memory that are missing."""
        if self._job is not None:
            raise ValueError(f"run {command.run} has been started already")
        job = bind_job(
            self._command.part,
            self._operations,
            self._shared,
            self._host.channels(),
            command.peers,
            self._command.payload,
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
        self._sink.deregister()
        if self._job is None:
            return
        run, executor = self._command.run, self._host.executor
        executor.cancel(run)
        if executor.status(run)["state"] != "finished":
            for channel in dict.fromkeys(channels_of(self._command.part, self._shared)):
                self._host.disconnect(channel)
        executor.forget(run)


def _read_operations(path: str | None) -> _core.JobOperations:
    """Read the columns of `Operations.engine_columns` from a NumPy archive. Raises ValueError for other contents."""
    if path is None:
        raise ValueError("a job without operations (valid: the name of a file with them)")
    with np.load(path, allow_pickle=False) as columns:
        try:
            return _core.JobOperations(**columns)
        except TypeError as error:
            raise ValueError(f"{path} has the columns {', '.join(columns)}: {error}") from None
