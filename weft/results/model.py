"""A run's results, as results.json holds them: one model for writing, printing and pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import ConfigDict, Field

from weft.controller.event_log import ControllerEvent
from weft.controller.noise.evidence import NoisyPart
from weft.quantities.plain_data import PlainData, plain
from weft.recording.unions import unions
from weft.results.arrays import PROGRAM_COUNTERS, PROGRAM_REGISTERS, CounterCell, RegisterCell
from weft.results.controller_events import CONTROLLER_EVENTS
from weft.results.credits import CREDITS, CreditResult
from weft.results.demand_routes import DEMAND_ROUTES, DemandRoutesResult
from weft.results.drops import DROPS
from weft.results.entropy_values import (
    ENTROPY_VALUES,
    PATH_SIGNALS,
    EntropyValuesResult,
    PathSignalsResult,
)
from weft.results.fast_forward import FastForwardResult
from weft.results.fidelity import FidelityResult
from weft.results.host_links import HOST_LINKS, HostLinkResult
from weft.results.int_paths import INT_PATHS, IntPath
from weft.results.kinds import R, ResultKind, kinds_of, result_kinds
from weft.results.link_events import LINK_EVENTS, LinkEventResult
from weft.results.link_faults import LINK_FAULTS, LinkFaultsResult
from weft.results.link_loads import LINK_LOADS, LinkLoadResult
from weft.results.link_retries import LINK_RETRIES, LinkRetryResult
from weft.results.losses import LossResult
from weft.results.management import MANAGEMENT_OUTAGES, ManagementOutage
from weft.results.nic_storms import NIC_STORMS, NicStormResult
from weft.results.noisy_parts import NOISY_PARTS
from weft.results.packet_conservation import PACKET_CONSERVATION, PacketConservation
from weft.results.pfc_watchdog import PFC_STORMS, PFC_WATCHDOG, PfcStormResult, PfcWatchdogResult
from weft.results.planes import PLANES, PlaneResult
from weft.results.queue_depth_ages import QUEUE_DEPTH_AGES, QueueDepthAges
from weft.results.relays import RELAYS, RelayResult
from weft.results.switch_memory import MEMORY, MemoryResult
from weft.results.telemetry import TELEMETRY_HOPS, TELEMETRY_REPORTS, TelemetryHop, TelemetryReports
from weft.results.trimming import TRIMMING, TrimmingResult
from weft.results.unfinished_events import UnfinishedEvent, warnings_of
from weft.scenario.observe import ObserveSection

_COUNT = Annotated[int, Field(ge=0)]
# A packet served this much of a round trip too late may already have changed what the transport does.
LATENESS_BOUND = 0.5


@dataclass(frozen=True)
class Lateness(PlainData):
    """How far behind events were served, in emulated picoseconds, over all processes of the lab."""

    derived: ClassVar[Mapping[str, str]] = {"valid": "valid", "sufficient_dilation": "sufficient_dilation"}

    largest_ps: int
    """The latest event."""
    percentile_99_ps: int
    """By which 99 % of the events were served."""
    path_rtt_ps: int
    """The round trip that they are compared with."""
    dilation: float
    """Dilation of the run."""

    @property
    def valid(self) -> bool:
        """Return whether the 99th percentile lies within half of the path's round-trip time."""
        return self.percentile_99_ps <= LATENESS_BOUND * self.path_rtt_ps

    @property
    def sufficient_dilation(self) -> float:
        """Return the dilation at which this machine would serve events within the bound, rounded up.

        Delays of the kernel last as long on the wall clock at any dilation, so twice the dilation halves them in
        emulated time. A backlog is otherwise: it grows while events need more time than there is, and is gone a little
        above the dilation that gives them enough. Then most events are about as late as the latest one, and what is
        needed lies between this dilation and the one that delays of the kernel would need; the estimate is their
        geometric mean. Beyond the bound it is at least twice this one. (Lab 2 on two cores: 16, 14 and 3 times the
        bound at 500, 1,000 and 1,500; within it from 2,000 on.) Far below what is needed hosts wait for each other,
        which hides some of it.
        """
        excess = self.percentile_99_ps / (LATENESS_BOUND * self.path_rtt_ps)
        if excess <= 0:
            return 1.0
        is_backlog = excess > 1 and self.percentile_99_ps >= self.largest_ps / 2
        factor = math.sqrt(excess) if is_backlog else excess
        # Just beyond the bound a backlog is near: a little more time may meet one that a little less did not.
        needed = self.dilation * (max(2.0, factor) if excess > 1 else factor)
        scale = math.pow(10, math.floor(math.log10(needed)))
        return max(1.0, math.ceil(needed / scale * 2) / 2 * scale)


@dataclass(frozen=True)
class Phase:
    """One run of the traffic: from the first host's start to the last one's end, in emulated time.

    `run` is its number in the tables of `observe`.
    """

    name: str
    """Name of the run."""
    start_ps: int
    """The first host's start."""
    end_ps: int
    """The last host's end."""
    run: int = 0
    """Its number in the tables."""


def time_of(phases: Sequence[Phase]) -> int:
    """Return the time in which any phase ran, in picoseconds of emulated time; concurrent phases count once."""
    starts = np.array([phase.start_ps for phase in phases], np.int64)
    ends = np.array([phase.end_ps for phase in phases], np.int64)
    begins, stops = unions(starts, ends)
    return int((stops - begins).sum())


@dataclass(frozen=True)
class ItemFailure:
    """An item of the traffic that failed."""

    item: int
    """Its number, from 0."""
    kind: str
    """Kind of traffic."""
    error: str
    """Why."""

    @property
    def sentence(self) -> str:
        """Return which item failed, and why."""
        return f"traffic[{self.item}] ({self.kind}) failed: {self.error}"


@dataclass(frozen=True)
class MadeBy(PlainData):
    """Origin of a run.

    Attributes:
        fabric: the parameters that `weft.topologies.from_parameters` makes the fabric of.
        scenario: the scenario's name; "run" where there is none.
        observe: the recorded tables.
        parameters: all parameters, as in results.json.
    """

    clock: Literal["real", "virtual"]
    seed: int
    fabric: dict[str, Any]
    scenario: str = "run"
    observe: ObserveSection = field(default_factory=ObserveSection)
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return all parameters."""
        return self.parameters


@dataclass(frozen=True)
class Results:
    """All that results.json holds.

    docs/results-reference.md is made from the texts below the fields, which are the file's keys; fields without one are
    not in it.

    `counters` and `registers` are empty where there are too many for this file. `traffic` are the results of each kind
    (`ResultKind.key`), each a list of the file's own. `absent` are the keys that a file lacked, which have their
    defaults.
    """

    derived: ClassVar[Mapping[str, str]] = {"ok": "ok"}

    made_by: MadeBy
    """All options, given or default; `scenario`, `fabric`, `p4_hash`, `slots`, `extensions` (hashes of classes of
    yours); `effective`: every default as resolved for this fabric.
    """
    traffic: dict[str, list[Any]] = field(default_factory=dict)
    fidelity: list[FidelityResult] = field(default_factory=list)
    """Only with segments: what travelled in them in place of packets."""
    fast_forward: list[FastForwardResult] = field(default_factory=list)
    """Only with fast-forward: what was repeated without packets, and how far packets were from that."""
    planes: list[PlaneResult] = field(default_factory=list)
    """Figures of each plane, over the whole run; null where the target does not report one (BMv2)."""
    int_paths: list[IntPath] = field(default_factory=list)
    """INT's view of one path, from the stack that a receiver echoed: the one with the most hops, and among these the
    deepest queue.
    """
    telemetry_reports: list[TelemetryReports] = field(default_factory=list)
    """Only with `telemetry: {mode: int-md}`: reports of INT-MD, by sink."""
    telemetry_hops: list[TelemetryHop] = field(default_factory=list)
    """Only with `telemetry: {mode: int-md}`: what each hop of each flow's path recorded."""
    link_loads: list[LinkLoadResult] = field(default_factory=list)
    """Loads of links between each two tiers, by kind of traffic; only with `observe: {loads: true}`."""
    memory: list[MemoryResult] = field(default_factory=list)
    """Shared memory of switches, by plane; only where switches have it."""
    nic_storms: list[NicStormResult] = field(default_factory=list)
    """Only if there are any: NICs that asked for pauses without end, in the order of their times."""
    pfc_watchdog: list[PfcWatchdogResult] = field(default_factory=list)
    """Only if there are any: classes of ports in which PFC watchdogs found storms."""
    pfc_storms: list[PfcStormResult] = field(default_factory=list)
    """Only if there are any: when PFC watchdogs found storms, and when these were over; of each port the first 4,096.
    """
    trimming: list[TrimmingResult] = field(default_factory=list)
    """Trimmed packets, by plane; only where there are some."""
    entropy_values: list[EntropyValuesResult] = field(default_factory=list)
    """Only with a transport that has them: states of entropy values at the end, by plane."""
    path_signals: list[PathSignalsResult] = field(default_factory=list)
    """Only with a transport that has entropy values: what hosts heard of their paths."""
    credits: list[CreditResult] = field(default_factory=list)
    """Credits, by plane; only where links have them."""
    queue_depth_ages: list[QueueDepthAges] = field(default_factory=list)
    """Ages of queue depths in adaptive choices, by plane; only with adaptive load balancing."""
    demand_routes: list[DemandRoutesResult] = field(default_factory=list)
    """Only with a kind of routing that follows demand: the routes chosen before each run, by plane."""
    management_outages: list[ManagementOutage] = field(default_factory=list)
    """Only with `control.outages`: when the controller reached no switch, and what waited for it."""
    relays: list[RelayResult] = field(default_factory=list)
    """Only if there are any: ranks that have sent on messages for others of their hosts."""
    host_links: list[HostLinkResult] = field(default_factory=list)
    """Only if there are any: links inside hosts that payload crossed."""
    link_retries: list[LinkRetryResult] = field(default_factory=list)
    """Only if there are any: directions of links with retry on which frames were sent again or waited."""
    link_faults: list[LinkFaultsResult] = field(default_factory=list)
    """Faults, by direction of each link on which they struck."""
    drops: dict[str, _COUNT] = field(default_factory=dict)
    """Packets dropped, by cause; no zeros. `program: …`: by the P4 program, which has no counter of its own for it."""
    losses: list[LossResult] = field(default_factory=list)
    """Only if there are any: packets that ended in switches but for their queues, and packets that hosts could not
    send; by place and reason.
    """
    absorbed: dict[str, _COUNT] = field(default_factory=dict)
    """Packets that in-network aggregation took in: `contributions` added up, and `repeated_contributions`. Of services:
    `requests` that wait for others, and `repeated_requests`."""
    packet_conservation: PacketConservation | None = None
    """The account of every packet, under the virtual clock."""
    link_events: list[LinkEventResult] = field(default_factory=list)
    """Links that failed or came back, in the order of their times."""
    controller_events: list[ControllerEvent] = field(default_factory=list)
    """Only if there are any: what the controller saw and did, in the order of their times."""
    retransmissions: int = 0
    """Packets sent again, by all hosts over the whole run."""
    cnps: int = 0
    """Congestion notifications received by all hosts over the whole run."""
    out_of_sequence_packets: int = 0
    """Packets that arrived behind a gap in their sequence, at all hosts over the whole run: packets before them were
    lost, or come later.
    """
    dropped_packet_ins: int = 0
    """Packets that switches sent to the controller and that it did not take: nobody fetched the 1,024 before them, or
    they do not say by which port they came.
    """
    lateness: Lateness | None = None
    """Under the real clock: how late events were served, over all processes of the lab."""
    incomplete_captures: list[str] = field(default_factory=list)
    """Only if there are any: captures that could not be written whole (a full disk), and why; the run exits with 4."""
    phases: list[Phase] = field(default_factory=list)
    """Runs of the traffic, in order; repetitions and warm-ups count as runs."""
    counters: list[CounterCell] = field(default_factory=list)
    """Counters of the P4 program that are not 0; only if `observe` asks for them, and up to 1,000."""
    registers: list[RegisterCell] = field(default_factory=list)
    """Registers of the P4 program that are not 0; only if `observe` asks for them, and up to 1,000."""
    rows_lost: int = 0
    """Rows that are missing from the tables."""
    noisy_parts: list[NoisyPart] = field(default_factory=list)
    """Only with `health`, and if there are any: noisy parts that were found, and what was done about them."""
    unfinished_events: list[UnfinishedEvent] = field(default_factory=list)
    """Only if there are any: scheduled events, of links, of operators, of circuits, that the traffic ended before."""
    failures: list[ItemFailure] = field(default_factory=list)
    """Only if there is one: the item of the traffic that failed; those before it have results, those after it did not
    run.
    """
    warnings: list[str] = field(default_factory=list)
    """Only if there are any: options that do not go well together, and what they cost."""
    absent: tuple[str, ...] = ()

    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)

    @property
    def kinds(self) -> tuple[ResultKind[Any], ...]:
        """Return the kinds of traffic of which results.json has lists, in their order."""
        return kinds_of([key for key, results in self.traffic.items() if results])

    @property
    def traffic_ps(self) -> int:
        """Return the time in which any traffic ran."""
        return time_of(self.phases)

    @property
    def ok(self) -> bool:
        """Return whether no item of the traffic failed, and nothing is known to be wrong with the results."""
        return not self.failures and all(each.ok for kind in self.kinds for each in self.of(kind))

    @property
    def result_count(self) -> int:
        """Return how many results there are, of all items of the traffic."""
        return sum(len(self.of(kind)) for kind in self.kinds)

    @property
    def checked_count(self) -> int:
        """Return how many of them were compared with what they must be."""
        return sum(kind.is_checked(each) for kind in self.kinds for each in self.of(kind))

    @property
    def all_warnings(self) -> list[str]:
        """Return what people should know of the run: `warnings`, and what did not happen."""
        return [*self.warnings, *warnings_of(self.unfinished_events)]

    def of(self, kind: ResultKind[R]) -> list[R]:
        """Return the results of a kind, one of traffic or of `OF_RUN`."""
        if kind.rows is not None:
            return kind.rows(self)
        found: list[R] = getattr(self, kind.key) if kind.key in OWN_KEYS else self.traffic.get(kind.key, [])
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with the derived figures."""
        own = {name: plain(getattr(self, name)) for name in OWN_KEYS}
        data = _with_traffic(own, {kind.key: plain(self.of(kind)) for kind in self.kinds})
        for name in _ONLY_WHERE_THERE_ARE_SOME:
            if not data[name]:
                del data[name]
        return data | {"ok": self.ok}


OWN_KEYS = tuple(each.name for each in fields(Results) if each.name not in ("absent", "traffic"))
"""Keys of results.json, without kinds of traffic and without `ok`, which follows from the others."""
OF_RUN: tuple[ResultKind[Any], ...] = (
    PLANES,
    LINK_LOADS,
    MEMORY,
    NIC_STORMS,
    PFC_WATCHDOG,
    PFC_STORMS,
    TRIMMING,
    ENTROPY_VALUES,
    PATH_SIGNALS,
    CREDITS,
    QUEUE_DEPTH_AGES,
    LINK_FAULTS,
    LINK_RETRIES,
    DEMAND_ROUTES,
    RELAYS,
    HOST_LINKS,
    LINK_EVENTS,
    MANAGEMENT_OUTAGES,
    NOISY_PARTS,
    CONTROLLER_EVENTS,
    INT_PATHS,
    TELEMETRY_REPORTS,
    TELEMETRY_HOPS,
    PROGRAM_COUNTERS,
    PROGRAM_REGISTERS,
    DROPS,
    PACKET_CONSERVATION,
)
"""Kinds of results of the whole run, in the order in which the terminal shows them."""
_ONLY_WHERE_THERE_ARE_SOME = (
    "fidelity",
    "fast_forward",
    "controller_events",
    "noisy_parts",
    "telemetry_reports",
    "telemetry_hops",
    "counters",
    "registers",
    "incomplete_captures",
    "link_retries",
    "demand_routes",
    "management_outages",
    "relays",
    "host_links",
    "nic_storms",
    "pfc_watchdog",
    "pfc_storms",
    "trimming",
    "entropy_values",
    "path_signals",
    "queue_depth_ages",
    "unfinished_events",
    "losses",
    "failures",
    "warnings",
)
"""Lists of the file's own that are not written when they are empty."""


def result_keys() -> tuple[str, ...]:
    """Return the keys of results.json, in their order, but for `ok`, which follows from the others."""
    return tuple(_with_traffic(dict.fromkeys(OWN_KEYS), {kind.key: None for kind in result_kinds()}))


def keys_only_where_there_are_some() -> tuple[str, ...]:
    """Return the keys of results.json for lists that are left out when empty."""
    return (
        *_ONLY_WHERE_THERE_ARE_SOME,
        *(kind.key for kind in result_kinds() if not kind.is_always_written),
    )


V = TypeVar("V")


def _with_traffic(own: dict[str, V], of_traffic: dict[str, V]) -> dict[str, V]:
    """Return what belongs to keys in the order of results.json: what was run comes after what made the run."""
    first, *others = own
    return {first: own[first], **of_traffic, **{key: own[key] for key in others}}
