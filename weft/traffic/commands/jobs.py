"""Commands for jobs: graphs of operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from weft.engine import _core
from weft.traffic.answers import OperationTimes, Prepared
from weft.traffic.commands.base import Command
from weft.traffic.jobs.fast_forward import RepeatedParts
from weft.traffic.jobs.native_job import SharedParts
from weft.traffic.jobs.rank_job import RankJob
from weft.traffic.messages import AS_BYTES, IN_PROCESS, Payload


@dataclass(frozen=True)
class ProvidedJob:
    """Objects that a runner in the same process hands to a host: its operations, the job's common objects, its data,
    and its groups in fast-forward."""

    operations: _core.JobOperations
    shared: SharedParts
    data: npt.NDArray[Any] | None = None
    repeated: RepeatedParts | None = None


@dataclass(frozen=True)
class PrepareJob(Command[Prepared], name="job"):
    """Make a rank's part of a job ready.

    `operations` names a NumPy archive with the columns of its operations, `data` a file with the data of collectives,
    which their results replace or (`result`) a copy of which they do.
    """

    run: int
    part: RankJob
    operations: str | None = None
    data: str | None = None
    result: str | None = None
    payload: Payload = AS_BYTES
    provided: ProvidedJob | None = field(default=None, metadata=IN_PROCESS)


@dataclass(frozen=True)
class AskOperationTimes(Command[OperationTimes], name="operation_times"):
    """Ask when the operations of a job's run started and were done; with a path, to write it to a NumPy archive."""

    run: int
    path: str | None = None
