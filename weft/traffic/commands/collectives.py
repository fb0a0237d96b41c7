"""Commands that make collectives and training steps ready."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from weft.traffic.answers import Prepared
from weft.traffic.commands.base import Command
from weft.traffic.lane_schedule import Schedule
from weft.traffic.messages import AS_BYTES, IN_PROCESS, Payload
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.training import TrainingStep


@dataclass(frozen=True)
class Provided:
    """Objects that a runner in the same process hands to a host, which otherwise makes or maps its own."""

    schedule: Schedule
    data: npt.NDArray[Any] | None = None


@dataclass(frozen=True)
class _OverData:
    """A run over a buffer.

    `buffer` and `result` name files. `rank` is the host's own unless given. `aggregation_jobs` are the ids of the
    jobs that reduce in the network, if any.
    """

    run: int
    spec: CollectiveSpec
    algorithm: str
    buffer: str | None = None
    result: str | None = None
    payload: Payload = AS_BYTES
    rank: int | None = None
    aggregation_jobs: tuple[int, ...] = ()
    provided: Provided | None = field(default=None, metadata=IN_PROCESS)


@dataclass(frozen=True)
class PrepareCollective(_OverData, Command[Prepared], name="collective"):
    """Make a collective ready: map and register its buffers."""

    collective: str = "allreduce"


@dataclass(frozen=True)
class _OfStep:
    step: TrainingStep


@dataclass(frozen=True)
class PrepareTrainingStep(_OverData, _OfStep, Command[Prepared], name="training_step"):
    """Make a training step ready; `spec` describes the all-reduce of its gradients."""
