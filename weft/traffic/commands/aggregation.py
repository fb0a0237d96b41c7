"""Commands for jobs that the network reduces: memberships, and streams that move to another tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from weft.quantities.traffic_classes import DATA_CLASS
from weft.traffic.aggregation_format import LANE_COUNT, Operation
from weft.traffic.answers import Contributed, Done, StreamPositions
from weft.traffic.commands.base import Command
from weft.traffic.data_types import DataType
from weft.traffic.messages import Between
from weft.traffic.schedule_nodes import TrafficClass


@dataclass(frozen=True)
class Membership:
    """A host's part in an aggregation job on a plane; fields are named as in `weft.controller.memberships`."""

    plane: int
    job_id: int
    epoch: int
    q_key: int
    rank: int
    worker_index: int
    worker_count: int
    worker_numbers: tuple[int, ...]
    slot_count: int
    aggregation_address: str
    aggregation_mac: str
    group_address: str
    lane_count: int = LANE_COUNT
    retransmission_timeout_ps: int | None = None
    traffic_class: TrafficClass = DATA_CLASS
    rate_bps: Annotated[int, Between(0)] = 0
    of_job: int | None = None
    """The job by whose id runs name the stream, if the network has another one for this NIC."""

    @property
    def name(self) -> int:
        """The id by which runs name the job."""
        return self.job_id if self.of_job is None else self.of_job


@dataclass(frozen=True)
class Join(Command[Done], name="join"):
    """Take part in aggregation jobs, in place of those with the same id on the same plane."""

    jobs: tuple[Membership, ...]


@dataclass(frozen=True)
class StopStreams(Command[StreamPositions], name="stop_streams"):
    """Stop a job's streams, which are to go on in another epoch; asked again, say where they stand."""

    job_id: int


@dataclass(frozen=True)
class MovedStream:
    """Where a stream goes on: at a message, by a membership. `plane` is the one where the host joined the job."""

    plane: int
    first_message: Annotated[int, Between(0)]
    membership: Membership


@dataclass(frozen=True)
class MoveStreams(Command[Done], name="move_streams"):
    """Go on with streams of a job that have been stopped."""

    job_id: int
    streams: tuple[MovedStream, ...]


@dataclass(frozen=True)
class StreamPart:
    """Messages of a stopped stream from `first` to before `end`, with lanes of one integer type and one operation of
    switches.
    """

    job_id: int
    plane: int
    first: Annotated[int, Between(0)]
    end: Annotated[int, Between(0)]
    operation: Operation
    dtype: DataType = DataType.INT32


@dataclass(frozen=True)
class WriteContributions(Command[Contributed], name="write_contributions"):
    """Write the lanes that a host would send in messages to a file, int32 in order of the messages."""

    part: StreamPart
    path: str


@dataclass(frozen=True)
class ReadResults(Command[Done], name="read_results"):
    """Take lanes of the same messages from a file as their results."""

    part: StreamPart
    path: str


@dataclass(frozen=True)
class EndMessages(Command[Done], name="end_messages"):
    """Complete what a stopped stream's messages before `end` complete, as all have their results."""

    job_id: int
    plane: int
    end: Annotated[int, Between(0)]


@dataclass(frozen=True)
class Leave(Command[Done], name="leave"):
    """Leave the jobs of planes, but those to keep."""

    planes: tuple[int, ...]
    keep: tuple[int, ...] = ()
