"""Base of all transports: all that the rest of Weft asks of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from weft.engine import PathChoice, _core
from weft.traffic.ev_profiles import EvProfile
from weft.traffic.header_sizes import IMMEDIATE
from weft.wire.headers.roce import ROCE_UDP_PORT

if TYPE_CHECKING:
    from weft.engine._core import CongestionControl, RcOptions
    from weft.traffic.transport_settings import TransportSettings

QueuePair = (
    _core.RcQueuePair
    | _core.UcQueuePair
    | _core.MrcQueuePair
    | _core.UetQueuePair
    | _core.RudiQueuePair
    | _core.UudQueuePair
)
"""A queue pair of a connection or a program, of any transport."""


NO_PEERS: Mapping[str, int] = MappingProxyType({})


class EvPaths(Protocol):
    """The paths from a host that entropy values (EVs) name."""

    @property
    def encapsulates(self) -> bool:
        """Whether packets go in an outer IPv6 header."""

    def routes_to(self, address: str) -> list[tuple[int, str]]:
        """Return the EVs to a peer's address, each with the address in the outer header (empty: there is none)."""

    def denied_to(self, address: str) -> frozenset[int]:
        """Return the EVs to a peer's address that an operator has excluded."""

    def nodes_to(self, address: str) -> dict[int, tuple[str, ...]]:
        """Return the nodes on the path of each EV to a peer's address, both hosts included."""


@dataclass(frozen=True)
class PlaneEnds:
    """A NIC's port in a plane, and where what leaves by it goes."""

    port: int
    destination_mac: str
    destination_ip: str


@dataclass(frozen=True)
class QueuePairPlace:
    """Where a queue pair is, and whom it talks to; `more_planes` are those besides the first."""

    nic: _core.Nic
    port: int
    completions: _core.CompletionHandler
    queue_pair: int | None
    remote_queue_pair: int
    destination_mac: str
    destination_ip: str
    source_udp_port: int | None
    more_planes: tuple[PlaneEnds, ...] = ()


@dataclass(frozen=True)
class FrameShape:
    """A frame's size depends on these besides its payload."""

    is_ipv6: bool
    telemetry: bool
    retransmission: str
    encapsulated: bool = False
    receiver_credits: bool = False


class TransportKind(ABC):
    """A transport: its keys, what it goes with, and how its queue pairs are made."""

    name: ClassVar[str]
    """As `transport.protocol` has it."""
    own_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of a scenario's `transport` that no other protocol has."""
    lacks_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of `transport` that have no meaning for it, besides those that other protocols own."""
    defaults: ClassVar[Mapping[str, str]] = {}
    """Keys of `transport` with another default than the section's."""
    udp_ports: ClassVar[tuple[int, ...]] = (ROCE_UDP_PORT,)
    """UDP ports of a host that uses it; requests to switches are RoCEv2's whatever the transport."""
    retransmissions: ClassVar[tuple[str, ...]]
    """Valid values of `retransmission`."""
    sprays: ClassVar[bool]
    """Its packets take several paths, whatever `path` is."""
    has_evs: ClassVar[bool] = False
    """Its packets carry entropy values, which may name paths."""
    spans_planes: ClassVar[bool] = False
    """A queue pair uses all planes that both hosts have, so messages are not divided among planes."""
    extension_bytes: ClassVar[int] = 0
    """Headers that each of its data packets has besides RoCEv2's BTH."""
    immediate_bytes: ClassVar[int] = IMMEDIATE
    """Header of a message's last packet for its immediate."""
    read_data_bytes: ClassVar[int | None] = None
    """Headers of each packet with data of a READ, besides the BTH; None: as of other data, with AETHs for RETHs."""
    acknowledges_reads: ClassVar[bool] = False
    """A READ is acknowledged before its data are sent."""
    answer_bytes: ClassVar[int]
    """The headers of the packet that answers its data, besides the BTH."""
    has_cnps: ClassVar[bool] = False
    """Receivers tell of marks by CNPs."""
    operations: ClassVar[frozenset[str]]
    """Those that it carries, by the names of `weft.rdma.work.OPERATIONS`."""
    why_no_more: ClassVar[str] = ""
    """Why it carries no other operations, where its name alone does not say so."""
    is_reliable: ClassVar[bool] = True
    """Messages arrive, or their queue pair fails; otherwise they may be lost, and are a packet at most."""
    takes_notifications: ClassVar[bool] = False
    """Switches may notify its senders of queues."""
    carries_int: ClassVar[bool] = False
    has_segments: ClassVar[bool] = False
    """A simulation may move several of its packets as one."""
    goes_with_data_classes: ClassVar[bool] = False
    """Its packets may travel in another class of data than the first."""
    code_points: ClassVar[tuple[tuple[int, int], ...]] = ()
    """DSCPs that only it uses, each with its traffic class."""
    answers_trimmed: ClassVar[bool] = False
    """Receivers answer packets that a switch has trimmed."""
    totals: ClassVar[tuple[str, ...]] = ()
    """Names of its own counters, which a host sums over its queue pairs in addition to the counters of RC."""
    nic_totals: ClassVar[tuple[str, ...]] = ()
    """Names of what it counts by NIC."""

    def defaults_for(self, given: Mapping[str, Any]) -> Mapping[str, str]:
        """Return `defaults`, and those that follow from other keys, which are not checked yet."""
        return self.defaults

    def variant(self, settings: TransportSettings) -> TransportKind:
        """Return the kind that queue pairs with these settings are of: itself, or one of its services."""
        return self

    @property
    def title(self) -> str:
        """The key that chooses it, and its value."""
        return f"transport.protocol: {self.name}"

    @property
    def tells_receivers(self) -> bool:
        """Whether a message can tell its receiver that it has come."""
        return "WRITE with immediate" in self.operations

    def alternatives(self, operations: Iterable[str]) -> list[str]:
        """Return what else its own keys may say for it to carry these operations; none if they choose nothing."""
        return []

    def check(self, settings: TransportSettings) -> None:
        """Check its own keys against others. Raises ValueError."""
        return

    def of_clearances(self, settings: TransportSettings) -> TransportSettings:
        """Return the settings of clearances' queue pairs: few, small and ahead of all data, they need no control."""
        return replace(settings, congestion_control="fixed-window", preset=None, parameters={})

    def objection_to_programs(self, settings: TransportSettings) -> str:
        """Return why programs (`weft.rdma`) cannot have queue pairs with these settings, "" if they can."""
        return ""

    @abstractmethod
    def make_queue_pair(
        self,
        place: QueuePairPlace,
        settings: TransportSettings,
        congestion_control: CongestionControl,
        path_choice: PathChoice | None,
        options: RcOptions,
        ev_paths: EvPaths | None = None,
        ev_profile: EvProfile | None = None,
    ) -> QueuePair:
        """Return a queue pair. Raises ValueError for what is out of range.

        `ev_paths`: the paths that EVs name, None where switches hash them. `ev_profile`: of its EVs, None: what
        `settings` say.
        """

    @abstractmethod
    def full_frame_bytes(self, mtu_bytes: int, shape: FrameShape) -> int:
        """Return the bytes of a data packet with a full payload, from Ethernet to iCRC."""

    def answered_header_bytes(self, ip_version: Literal[4, 6]) -> int:
        """Return the headers that a receiver needs to answer a trimmed packet; 0 if it answers none."""
        return 0

    def options(self, settings: TransportSettings) -> Mapping[str, Any]:
        """Return the engine's options that only this protocol has, by the engine's names."""
        return {}

    def flow_options(
        self,
        settings: TransportSettings,
        more_planes: Sequence[tuple[int, str]] = (),
        ev_paths: EvPaths | None = None,
        peers: Mapping[str, int] = NO_PEERS,
        ev_profile: EvProfile | None = None,
    ) -> Mapping[str, Any]:
        """Return the keyword arguments of the engine's FlowGenerator.add_port that have it make these queue pairs.

        `more_planes` are the other ports that a queue pair uses, with destination MACs, if it `spans_planes`. `peers`:
        addresses of the flows' other ends, each with the port of the NIC that leads there. `ev_paths`, `ev_profile`:
        see `make_queue_pair`.
        """
        return {}

    def nic_stats(self, nic: _core.Nic, *, reset: bool = False) -> Mapping[str, int]:
        """Return what it counts by NIC, not by queue pair; `reset`: it counts from zero on."""
        return {}

    def leave_ports(self, nic: _core.Nic, ports: Sequence[int]) -> None:
        """Have a NIC's queue pairs leave these ports, which an operator has taken out of use, and use all others.

        Only a kind that `spans_planes` does; messages of the others are moved (`weft.traffic.plane_detours`).
        """
        return

    def path_states(self, queue_pair: QueuePair) -> Sequence[Mapping[str, int]]:
        """Return how many of a queue pair's paths are in which state, by its planes; none if it keeps no states."""
        return ()

    def flow_path_states(self, generator: _core.FlowGenerator) -> Sequence[Mapping[str, int]]:
        """Return the same for a generator's queue pairs, those that have ended included, by port of the NIC."""
        return ()

    def stats_of(self, queue_pair: QueuePair) -> Mapping[str, Any]:
        """Return a queue pair's counters, with its own ones."""
        return queue_pair.stats()

    def counters_of(self, generator: _core.FlowGenerator) -> Mapping[str, Any]:
        """Return the counters of a generator's queue pairs, with their own ones."""
        return generator.counters()
