"""The commands that a host carries out, as docs/spec/endpoint-protocol.md describes them.

Each names the type of its answer. Under the virtual clock hosts are given these objects; endpoint processes read them
from lines of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, cast, get_args, get_origin

import numpy.typing as npt

from weft.engine import _core
from weft.quantities.traffic_classes import DATA_CLASS
from weft.rdma.messages import OutOfBandMessage
from weft.traffic.aggregation_format import LANE_COUNT, Operation
from weft.traffic.answers import (
    ApplicationRecords,
    Contributed,
    Done,
    FlowRecords,
    Memory,
    OperationTimes,
    ParameterRecords,
    Prepared,
    ProgramLeft,
    ProgramProgress,
    RunState,
    Saved,
    ServiceRecords,
    StreamPositions,
    Suspended,
    TcpRecords,
    TransportInForce,
)
from weft.traffic.data_types import DataType
from weft.traffic.host_stats import HostStats
from weft.traffic.jobs.native_job import SharedParts
from weft.traffic.jobs.rank_job import RankJob
from weft.traffic.lane_schedule import Schedule
from weft.traffic.messages import (
    AS_BYTES,
    IN_PROCESS,
    Between,
    Message,
    MessageError,
    Payload,
    as_message,
    read_message,
)
from weft.traffic.patterns import Flow
from weft.traffic.programs.base import Program
from weft.traffic.schedule_nodes import Channel, TrafficClass
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.training import TrainingStep

DEFAULT_RETRY_LIMIT = 7
DEFAULT_WAIT_S = 60.0
QueuePairNumber = Annotated[int, Between(0, (1 << 24) - 1)]
PacketSequenceNumber = Annotated[int, Between(0, (1 << 24) - 1)]
UdpPort = Annotated[int, Between(0, (1 << 16) - 1)]

A = TypeVar("A")
_COMMAND, _NUMBER = "command", "id"


class Command(Generic[A]):
    """A command whose answer is an A. `name` is that of the protocol."""

    name: ClassVar[str]

    def __init_subclass__(cls, name: str, *, in_process: bool = False) -> None:
        """Enter the command in `COMMANDS`, unless it only ever comes from a caller in the same process."""
        cls.name = name
        if not in_process:
            COMMANDS[name] = cls


COMMANDS: dict[str, type[Command[Any]]] = {}
"""All commands, by name."""


@dataclass(frozen=True)
class Connection:
    """A queue pair to make. Over scale-up links it needs no address.

    Without `destination_mac` packets go to the plane's gateway; without `source_udp_port` the NIC chooses one.
    """

    plane: int
    peer: int
    queue_pair: QueuePairNumber
    remote_queue_pair: QueuePairNumber
    destination_ip: str | None = None
    label: str = "collective"
    initial_psn: PacketSequenceNumber = 0
    remote_initial_psn: PacketSequenceNumber = 0
    destination_mac: str | None = None
    source_udp_port: UdpPort | None = None
    telemetry: bool = False
    retry_limit: Annotated[int, Between(0)] = DEFAULT_RETRY_LIMIT
    traffic_class: TrafficClass = DATA_CLASS


@dataclass(frozen=True)
class Connect(Command[Done], name="connect"):
    """Make queue pairs, in place of those to the same peers with the same labels."""

    connections: tuple[Connection, ...]


@dataclass(frozen=True)
class Disconnect(Command[Done], name="disconnect"):
    """Remove connections of a label, or all."""

    label: str | None = None


@dataclass(frozen=True)
class Suspend(Command[Suspended], name="suspend"):
    """Stop connections whose plane is lost, and keep what their peers have not acknowledged."""

    channels: tuple[Channel, ...]


@dataclass(frozen=True)
class DetouredChannel:
    """A suspended connection, those that stand for it in turn, and how many messages its peer has received over it."""

    channel: Channel
    over: tuple[Channel, ...]
    peer_received: Annotated[int, Between(0)]


@dataclass(frozen=True)
class Detour(Command[Done], name="detour"):
    """Have other connections carry what suspended ones would, but for what their peers have received."""

    channels: tuple[DetouredChannel, ...]


@dataclass(frozen=True)
class Membership:
    """A host's part in an aggregation job on a plane; field names are those of `weft.controller.memberships`."""

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
    """Messages of a stopped stream from `first` to before `end`, those whose lanes hold integers of a type and have one
    operation of switches.
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


@dataclass(frozen=True)
class Provided:
    """What a runner in the same process hands to a host, which otherwise makes or maps its own."""

    schedule: Schedule
    data: npt.NDArray[Any] | None = None


@dataclass(frozen=True)
class _OverData:
    """A run over a buffer.

    `buffer` and `result` name files. `rank` is the host's own unless given. `aggregation_jobs` are the ids of the
    jobs whose trees reduce, if the network does.
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
    """Make a training step ready; `spec` is that of its gradients."""


@dataclass(frozen=True)
class PrepareTraffic(Command[Prepared], name="traffic"):
    """Make flows ready, by their numbers in the run: those that the host sends or receives."""

    run: int
    flows: Mapping[int, Flow]
    payload: Payload = AS_BYTES
    rank: int | None = None


class WorkloadFlow(NamedTuple):
    """A flow of a workload, as one of its ends has it: the queue pairs are its own and the peer's."""

    flow: int
    start_ps: int
    plane: int
    size_bytes: int
    peer: int
    peer_ip: str
    queue_pair: int
    remote_queue_pair: int


@dataclass(frozen=True)
class PrepareFlows(Command[Prepared], name="flows"):
    """Make the flows of a workload ready, each over a queue pair of its own."""

    run: int
    sent: tuple[WorkloadFlow, ...]
    received: tuple[WorkloadFlow, ...]
    telemetry: bool = False
    payload: Payload = AS_BYTES


@dataclass(frozen=True)
class ProvidedJob:
    """What a runner in the same process hands to a host: its operations, what all ranks of the job share, its data."""

    operations: _core.JobOperations
    shared: SharedParts
    data: npt.NDArray[Any] | None = None


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
class ServiceRequests:
    """What a host asks of a service of switches; `cells` are used in turn, `window` requests are under way."""

    operation: Literal["barrier", "fetch_and_add", "compare_and_swap"]
    requests: Annotated[int, Between(1)]
    cells: Annotated[int, Between(1)] = 1
    window: Annotated[int, Between(1)] = 1
    addend: Annotated[int, Between(0, (1 << 64) - 1)] = 1


@dataclass(frozen=True)
class ServicePart:
    """A host's part in a group; the field names are those of controller.services.ServiceMembership."""

    nic: int
    group_id: int
    epoch: int
    q_key: int
    rank: int
    client: int
    service_address: str
    service_mac: str
    group_address: str


@dataclass(frozen=True)
class PrepareService(Command[Prepared], name="service"):
    """Make requests to a service ready, as a member of a group."""

    run: int
    part: ServicePart
    requests: ServiceRequests


@dataclass(frozen=True)
class AskServiceRecords(Command[ServiceRecords], name="service_records"):
    """Ask when the requests of a run of `service` began and were answered, and with what."""

    run: int


@dataclass(frozen=True)
class PrepareApplications(Command[Prepared], name="applications", in_process=True):
    """Make programs on the host's own IP stack ready."""

    run: int
    programs: tuple[Program, ...]


@dataclass(frozen=True)
class AskApplicationRecords(Command[ApplicationRecords], name="application_records", in_process=True):
    """Ask what the programs of a run have found."""

    run: int


@dataclass(frozen=True)
class ParameterPart:
    """A host's part in a group with a parameter store; `client` is its number, None for the store itself."""

    nic: int
    group_id: int
    epoch: int
    q_key: int
    client: int | None
    store_address: str


@dataclass(frozen=True)
class ParameterRequests:
    """What each client asks of a store: blocks drawn by Zipf's law with this exponent, some of them to push."""

    requests: Annotated[int, Between(1)]
    blocks: Annotated[int, Between(1)]
    window: Annotated[int, Between(1)] = 1
    skew: Annotated[float, Between(0)] = 0.0
    push_share: Annotated[float, Between(0, 1)] = 0.0
    seed: int = 1


@dataclass(frozen=True)
class PrepareParameters(Command[Prepared], name="parameters"):
    """Make a client of a parameter store ready, or the store; `clients` is how many it has."""

    run: int
    part: ParameterPart
    requests: ParameterRequests
    clients: Annotated[int, Between(1)]


@dataclass(frozen=True)
class AskParameterRecords(Command[ParameterRecords], name="parameter_records"):
    """Ask for the requests of a run of `parameters` and their answers, of the store for what it has answered."""

    run: int


@dataclass(frozen=True)
class TcpEnd:
    """One end of a TCP flow. `peer` is the other end's address; `port` is the receiver's.

    `size_bytes` 0: as much as goes in `duration_ps`. Times count from the run's start.
    """

    flow: int
    port: UdpPort
    sends: bool
    peer: str = ""
    ip_version: Literal[4, 6] = 4
    start_ps: int = 0
    size_bytes: int = 0
    duration_ps: int = 0
    dscp: Annotated[int, Between(0, 63)] = 0
    congestion_control: str = "cubic"
    ecn: bool = False
    sack: bool = True
    receive_buffer_bytes: Annotated[int, Between(1)] = 4 << 20
    initial_window_segments: Annotated[int, Between(1)] = 10
    least_timeout_ps: Annotated[int, Between(1)] = 200_000_000_000
    delayed_acknowledgement_ps: Annotated[int, Between(1)] = 40_000_000_000
    acknowledge_every_segments: Annotated[int, Between(1)] = 2
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PrepareTcpFlows(Command[Prepared], name="tcp_flows"):
    """Make a host's ends of TCP flows ready; windows are sampled no more often than `sample_interval_ps`, 0: never."""

    run: int
    ends: tuple[TcpEnd, ...]
    sample_interval_ps: Annotated[int, Between(0)] = 0


@dataclass(frozen=True)
class AskTcpRecords(Command[TcpRecords], name="tcp_records"):
    """Ask what became of a host's ends of the flows of a run of `tcp_flows`."""

    run: int


@dataclass(frozen=True)
class AskOperationTimes(Command[OperationTimes], name="operation_times"):
    """Ask when the operations of a job's run started and were done; with a path, to write it to a NumPy archive."""

    run: int
    path: str | None = None


@dataclass(frozen=True)
class Start(Command[Done], name="start"):
    """Start a prepared run at an emulated time; `peers` is the memory of those that the host writes to, by rank."""

    run: int
    start_ps: int = 0
    peers: Mapping[int, Memory] = field(default_factory=dict)


@dataclass(frozen=True)
class Status(Command[RunState], name="status"):
    """Ask how far a run is."""

    run: int


@dataclass(frozen=True)
class Wait(Command[RunState], name="wait"):
    """Ask the same once the run has ended, or the time is up: real time, or under the virtual clock emulated time."""

    run: int
    timeout_s: Annotated[float, Between(0)] = DEFAULT_WAIT_S


@dataclass(frozen=True)
class AskFlowRecords(Command[FlowRecords], name="flow_records"):
    """Ask when the flows of a run of `traffic` or `flows` began and ended."""

    run: int


@dataclass(frozen=True)
class Release(Command[Done], name="release"):
    """Release a run and its buffers."""

    run: int


@dataclass(frozen=True)
class AskStats(Command[HostStats], name="stats"):
    """Ask for all counters."""


@dataclass(frozen=True)
class ResetStats(Command[Done], name="reset_stats"):
    """Set all counters to zero."""


@dataclass(frozen=True)
class AskTransport(Command[TransportInForce], name="transport"):
    """Ask with which settings queue pairs are made, over an IP version, with INT or without."""

    ip_version: Literal[4, 6] = 4
    telemetry: bool = False


@dataclass(frozen=True)
class StartProgram(Command[Done], name="program"):
    """Load a user's program, `path/to/file.py:Name`, and let it run with these parameters; see `weft.rdma`.

    `hosts` are those of all programs of the run, `ranks` those of all hosts.
    """

    run: int
    reference: str
    parameters: Mapping[str, object]
    hosts: tuple[str, ...]
    ranks: Mapping[str, int]
    first_queue_pair: QueuePairNumber
    telemetry: bool = False
    ip_version: Literal[4, 6] = 4


@dataclass(frozen=True)
class FollowProgram(Command[ProgramProgress], name="program_progress"):
    """Hand a program messages of others, and ask for those that it has sent."""

    run: int
    delivered: tuple[OutOfBandMessage, ...] = ()


@dataclass(frozen=True)
class EndProgram(Command[ProgramLeft], name="end_program"):
    """End a program if it has not ended, forget it, and ask for what it has left."""

    run: int


@dataclass(frozen=True)
class Capture(Command[Done], name="pcap"):
    """Record what a plane's port sends and receives; without a path the capture ends."""

    plane: int
    path: str | None = None


@dataclass(frozen=True)
class SaveRecorded(Command[Saved], name="recorded"):
    """Write what the host's probe has recorded to a NumPy archive."""

    path: str


def command_message(command: Command[Any], number: int) -> dict[str, object]:
    """Return a command in JSON's types; its answer has the number."""
    return {_COMMAND: command.name, _NUMBER: number, **as_message(command)}


def read_command(message: Message) -> Command[Any]:
    """Return the command that a message is. Raises MessageError."""
    name = message.get(_COMMAND)
    if name is None:
        raise MessageError(f"field '{_COMMAND}' is missing (valid: {', '.join(sorted(COMMANDS))})")
    if not isinstance(name, str) or name not in COMMANDS:
        raise MessageError(f"unknown command {name!r} (valid: {', '.join(sorted(COMMANDS))})")
    own = {key: value for key, value in message.items() if key not in (_COMMAND, _NUMBER)}
    return read_message(COMMANDS[name], own)


def numbered(message: Message, answer: Message) -> Message:
    """Return an answer with the number of the message that it answers, if that has one."""
    return {**answer, _NUMBER: message[_NUMBER]} if _NUMBER in message else answer


def read_answer(command: Command[A], message: Message) -> A:
    """Return the answer to a command. Raises MessageError."""
    own = {key: value for key, value in message.items() if key != _NUMBER}
    return read_message(_answer_type(type(command)), own)


def _answer_type(kind: type[Command[A]]) -> type[A]:
    (of_command,) = (base for base in vars(kind)["__orig_bases__"] if get_origin(base) is Command)
    (answer,) = get_args(of_command)
    return cast("type[A]", answer)
