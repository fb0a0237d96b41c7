"""Hosts' answers to commands (`weft.traffic.commands`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from weft.rdma.out_of_band import OutOfBandMessage
from weft.rdma.reports import Operation, Point
from weft.traffic.ev_profiles import EvProfile
from weft.traffic.jobs.times import RankTimes
from weft.traffic.messages import IN_PROCESS
from weft.traffic.native_schedule import RemoteBuffer

Memory = Mapping[str, RemoteBuffer]
"""Where peers may write, by the name of the buffer."""


@dataclass(frozen=True)
class Ready:
    """The endpoint is configured."""

    name: str
    rank: int
    ready: bool = True


@dataclass(frozen=True)
class Refused:
    """A command was not carried out; `user_error` is the report where a user's code raised."""

    error: str
    user_error: str | None = None

    def as_message(self) -> dict[str, object]:
        """Return it in JSON's types; `user_error` is there only where there is one."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Done:
    """The command is carried out."""

    done: bool = True


@dataclass(frozen=True)
class Suspended:
    """How many messages have arrived over each of the connections that are now suspended, in their order."""

    received: tuple[int, ...]


@dataclass(frozen=True)
class StreamPositions:
    """Where a host's streams of an aggregation job stand, in order of their planes.

    `first_unfinished` are the numbers of the first messages without a result, `sent` and `posted` those after the last
    messages sent and posted.
    """

    planes: tuple[int, ...]
    first_unfinished: tuple[int, ...]
    sent: tuple[int, ...]
    posted: tuple[int, ...]


@dataclass(frozen=True)
class EntropyValue:
    """An entropy value (EV) of a queue pair, or one that an operator denies and no queue pair has now.

    Attributes:
        queue_pair: its number; None if no queue pair has the EV.
        peer: address of the other host on the EV's plane.
        plane: of the host's NICs.
        value: UDP source port, and flow label in the low half.
        nodes: hosts and switches on its path; none where switches hash EVs.
        outer_destination: of the outer header of its packets; empty without one.
        state: good, skip, assumed_bad or denied.
        active: false for backups, and for EVs not in use.
        turns: how often it was chosen for a packet.
        probed: whether the last EV probes of an operator had one over it.
        round_trip_ps: of that probe; None as long as it is not answered.

    """

    queue_pair: int | None
    peer: str
    plane: int
    value: int
    nodes: tuple[str, ...]
    outer_destination: str
    state: str
    active: bool
    turns: int
    probed: bool = False
    round_trip_ps: int | None = None


@dataclass(frozen=True)
class EntropyValues:
    """The entropy values of a host's queue pairs."""

    evs: tuple[EntropyValue, ...]


@dataclass(frozen=True)
class EvEvent:
    """An EV of a queue pair has changed its state (`mrc_ctl_ev_event`).

    Attributes:
        time_ps: when.
        profile_id: the queue pair's EV profile.
        queue_pair: its number.
        peer: address of the other host on the EV's plane.
        plane: of the host's NICs.
        value: of the EV.
        state: good or assumed_bad.
        drop_count: events between the one before and this one that were dropped, because too many waited.

    """

    time_ps: int
    profile_id: int
    queue_pair: int
    peer: str
    plane: int
    value: int
    state: str
    drop_count: int


@dataclass(frozen=True)
class EvEvents:
    """EV events, oldest first."""

    events: tuple[EvEvent, ...]


@dataclass(frozen=True)
class EvProfilesOfHost:
    """A host's EV profiles."""

    profiles: tuple[EvProfile, ...]


@dataclass(frozen=True)
class Contributed:
    """How many lanes a host has written."""

    lanes: int


@dataclass(frozen=True)
class Prepared:
    """A run is ready to start."""

    run: int
    memory: Memory


@dataclass(frozen=True)
class RunState:
    """How far a run is. Times are None before it has begun, or ended; `nodes` are steps, or flows sent and received."""

    run: int
    state: Literal["prepared", "waiting", "running", "finished", "failed", "cancelled"]
    started_ps: int | None = None
    finished_ps: int | None = None
    nodes_done: int = 0
    node_count: int = 0
    reason: str = ""

    @property
    def has_ended(self) -> bool:
        """Return whether nothing more happens in the run."""
        return self.state == "finished" or self.ended_badly

    @property
    def ended_badly(self) -> bool:
        """Return whether the run ended before it was done."""
        return self.state in ("failed", "cancelled")


@dataclass(frozen=True)
class EndedFlows:
    """Columns of flows that have ended, a row for each."""

    flow: tuple[int, ...] = ()
    started_ps: tuple[int, ...] = ()
    finished_ps: tuple[int, ...] = ()
    retransmitted_packets: tuple[int, ...] = ()


@dataclass(frozen=True)
class FlowRecords:
    """Flows that the host has sent and that have ended."""

    run: int
    records: EndedFlows


@dataclass(frozen=True)
class ServiceRecords:
    """Columns of a host's requests to a service, a row for each.

    `value` is what a request found in its counter, `attempts` how often it was tried.
    """

    run: int
    started_ps: tuple[int, ...]
    finished_ps: tuple[int, ...]
    value: tuple[int, ...]
    attempts: tuple[int, ...]


@dataclass(frozen=True)
class ApplicationRecords:
    """Findings of the programs in a host's part of a run, in their order."""

    run: int
    records: tuple[Any, ...]


@dataclass(frozen=True)
class StoreCounts:
    """Answers of a parameter store: pulls, pushes that it applied, and repeated pushes that it had applied before."""

    pulls: int = 0
    pushes: int = 0
    repeated_pushes: int = 0


@dataclass(frozen=True)
class ParameterRecords:
    """Columns of a client's requests to a parameter store, a row for each.

    `block_version` is that which a pull found or a push made, `writer` and `writer_sequence` the client and the number
    of the push that made it, `cached` whether a switch has answered. `spoilt_blocks` are those that nobody wrote.
    """

    run: int
    block: tuple[int, ...] = ()
    is_push: tuple[bool, ...] = ()
    started_ps: tuple[int, ...] = ()
    finished_ps: tuple[int, ...] = ()
    block_version: tuple[int, ...] = ()
    writer: tuple[int, ...] = ()
    writer_sequence: tuple[int, ...] = ()
    cached: tuple[int, ...] = ()
    spoilt_blocks: int = 0
    store: StoreCounts = StoreCounts()


@dataclass(frozen=True)
class TcpEndRecord:
    """One end of a TCP flow; `finished_ps` is 0 for one that has not ended.

    Of the end that sends, `bytes` are those acknowledged, of the other one those received in order.
    """

    flow: int
    sends: bool
    started_ps: int
    finished_ps: int
    bytes: int
    spoilt_segments: int
    smoothed_round_trip_ps: int
    sent_segments: int
    retransmitted_segments: int
    timeouts: int
    fast_recoveries: int
    ecn_reductions: int
    tail_probes: int
    reported_duplicates: int
    received_acknowledgements: int
    received_ecn_echoes: int
    received_segments: int
    marked_segments: int
    out_of_order_segments: int
    duplicate_segments: int


@dataclass(frozen=True)
class TcpSamples:
    """Columns of senders' windows over time; `marked_share` is DCTCP's alpha."""

    flow: tuple[int, ...] = ()
    time_ps: tuple[int, ...] = ()
    window_bytes: tuple[int, ...] = ()
    in_flight_bytes: tuple[int, ...] = ()
    marked_share: tuple[float, ...] = ()


@dataclass(frozen=True)
class TcpRecords:
    """A host's ends of TCP flows, those that it sends first, and samples of the windows of these."""

    run: int
    ends: tuple[TcpEndRecord, ...] = ()
    samples: TcpSamples = TcpSamples()


@dataclass(frozen=True)
class OperationTimes:
    """When the operations of a rank's part of a job started and were done; a process has written it to a file."""

    run: int
    times: RankTimes | None = field(default=None, metadata=IN_PROCESS)


@dataclass(frozen=True)
class ProgramProgress:
    """Messages of a user's program to others, whether it has ended, and the traceback if it has raised."""

    run: int
    sent: tuple[OutOfBandMessage, ...] = ()
    has_ended: bool = False
    raised: str | None = None


@dataclass(frozen=True)
class ProgramLeft:
    """Reports of a user's program (`weft.rdma.reports`), and the operation that it awaited if it had not ended."""

    run: int
    started_ps: int
    finished_ps: int
    values: Mapping[str, float]
    texts: Mapping[str, str]
    series: Mapping[str, tuple[Point, ...]]
    operations: tuple[Operation, ...]
    awaited: str = ""


@dataclass(frozen=True)
class TransportInForce:
    """Settings of queue pairs by their names in results, with every default filled in.

    The parameters of a user's class are those given.
    """

    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Saved:
    """How many rows were beyond what a probe keeps."""

    rows_lost: int
