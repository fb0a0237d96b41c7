"""What a run found, as results.json holds it: the one model of those who write it, print it and make pages of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from weft.controller.event_log import ControllerEvent
from weft.results.arrays import CounterCell, RegisterCell
from weft.results.collectives import CollectiveResult
from weft.results.credits import CreditResult
from weft.results.flows import FlowsResult
from weft.results.kinds import R, ResultKind, result_kinds
from weft.results.link_events import LinkEventResult
from weft.results.link_faults import LinkFaultsResult
from weft.results.packet_conservation import PacketConservation
from weft.results.queue_depth_ages import QueueDepthAges
from weft.results.switch_memory import MemoryResult
from weft.results.training_steps import TrainingStepResult
from weft.results.workloads import WorkloadResult
from weft.scenario.observe import ObserveSection

_COUNT = Annotated[int, Field(ge=0)]
# A packet served this much of a round trip too late may already have changed what the transport does.
LATENESS_BOUND = 0.5


@dataclass(frozen=True)
class PlaneResult:
    """What happened in one plane, over the whole run; None for what the target does not say (BMv2)."""

    plane: int
    ecn_marked_packets: int
    largest_queue_bytes: int | None
    largest_queue_port: str
    packets_aggregated: int
    tail_drops: int | None
    injected_losses: int | None
    corrupted_packets: int | None = None


@dataclass(frozen=True)
class IntHop:
    """One hop of a path as INT saw it."""

    hop: int
    switch: str
    rate_bps: int
    queue_bytes: int
    timestamp_ns: int
    tx_bytes: int


@dataclass(frozen=True)
class IntPath:
    """INT's view of a path, from the stack that a receiver echoed.

    `coarse`: each switch has its own clock, in microseconds (BMv2), so times of two hops do not compare.
    """

    source: str
    destination: str
    plane: int
    hops: tuple[IntHop, ...]
    coarse: bool = False


@dataclass(frozen=True)
class Lateness:
    """How far behind events were served, in emulated picoseconds, over all processes of the lab."""

    largest_ps: int
    percentile_99_ps: int
    path_rtt_ps: int
    dilation: float

    @property
    def valid(self) -> bool:
        """Return whether the 99th percentile lies within `LATENESS_BOUND` of the path's round-trip time."""
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

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with the derived figures."""
        return {**asdict(self), "valid": self.valid, "sufficient_dilation": self.sufficient_dilation}


@dataclass(frozen=True)
class Phase:
    """One run of the traffic: from the first host's start to the last one's end, in emulated time.

    `run` is its number in the tables of `observe`.
    """

    name: str
    start_ps: int
    end_ps: int
    run: int = 0


@dataclass(frozen=True)
class MadeBy:
    """What made a run.

    Attributes:
        fabric: the parameters that `weft.topologies.from_parameters` makes the fabric of.
        scenario: the scenario's name; "run" where there is none.
        observe: what was recorded.
        parameters: everything, as results.json has it.
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
    """All that results.json holds; docs/results.md describes every key.

    `counters` and `registers` are empty where there are too many for this file. `absent` are the keys that a file
    lacked, which have their defaults. `others` are results of kinds of traffic that have no list here, by their keys.
    """

    made_by: MadeBy
    collectives: list[CollectiveResult] = field(default_factory=list)
    flows: list[FlowsResult] = field(default_factory=list)
    workloads: list[WorkloadResult] = field(default_factory=list)
    training_steps: list[TrainingStepResult] = field(default_factory=list)
    planes: list[PlaneResult] = field(default_factory=list)
    int_paths: list[IntPath] = field(default_factory=list)
    memory: list[MemoryResult] = field(default_factory=list)
    credits: list[CreditResult] = field(default_factory=list)
    queue_depth_ages: list[QueueDepthAges] = field(default_factory=list)
    link_faults: list[LinkFaultsResult] = field(default_factory=list)
    drops: dict[str, _COUNT] = field(default_factory=dict)
    absorbed: dict[str, _COUNT] = field(default_factory=dict)
    packet_conservation: PacketConservation | None = None
    link_events: list[LinkEventResult] = field(default_factory=list)
    controller_events: list[ControllerEvent] = field(default_factory=list)
    retransmissions: int = 0
    cnps: int = 0
    dropped_packet_ins: int = 0
    lateness: Lateness | None = None
    incomplete_captures: list[str] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    counters: list[CounterCell] = field(default_factory=list)
    registers: list[RegisterCell] = field(default_factory=list)
    rows_lost: int = 0
    absent: tuple[str, ...] = ()
    others: dict[str, list[Any]] = field(default_factory=dict)

    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)

    @property
    def ok(self) -> bool:
        """Return whether every item of the traffic gave the right result."""
        return all(each.ok for kind in result_kinds() for each in self.of(kind))

    def of(self, kind: ResultKind[R]) -> list[R]:
        """Return the results of a kind."""
        found: list[R] = getattr(self, kind.key) if kind.key in RESULT_KEYS else self.others.get(kind.key, [])
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with the derived figures."""
        data = {name: _plain(getattr(self, name)) for name in RESULT_KEYS}
        for name in ONLY_WHERE_THERE_ARE_SOME:
            if not data[name]:
                del data[name]
        data |= {key: _plain(items) for key, items in self.others.items()}
        return data | {"ok": self.ok}


RESULT_KEYS = tuple(each.name for each in fields(Results) if each.name not in ("absent", "others"))
"""Keys of results.json, but for `ok`, which follows from the others."""
ONLY_WHERE_THERE_ARE_SOME = (
    "controller_events",
    "counters",
    "registers",
    "incomplete_captures",
    "queue_depth_ages",
)
"""Lists that are not written when they are empty."""


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if hasattr(value, "as_dict"):
        return value.as_dict()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
