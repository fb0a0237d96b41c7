"""The configuration of a host: one schema for both clocks, and for the line of JSON that an endpoint process reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from weft.errors import InvalidValueError
from weft.quantities.traffic_classes import CLASSES
from weft.topologies.int_rates import CODES, STANDARD_INT_RATES
from weft.traffic import transport_settings
from weft.traffic.host_ip import IpNicConfig
from weft.traffic.messages import IN_PROCESS
from weft.traffic.protocols import DEFAULT_PROTOCOLS, ProtocolSettings
from weft.traffic.transports.kind import EvPaths


@dataclass(frozen=True)
class HostRecording:
    """Messages that it sends, INT stacks that come back from these ranks or from all, steps of its schedules."""

    messages: bool = False
    telemetry_from: tuple[int, ...] = ()
    all_telemetry: bool = False
    steps: bool = False

    @property
    def any(self) -> bool:
        """Return whether anything is recorded."""
        return self.messages or self.steps or self.all_telemetry or bool(self.telemetry_from)

    def telemetry_of(self, peer: int) -> bool:
        """Return whether stacks that this rank sends back are recorded."""
        return self.all_telemetry or peer in self.telemetry_from


DEFAULT_MTU_BYTES = 1024
DEFAULT_WALL_CLOCK_FLOOR_NS = 20_000_000


def without_prefix(address: str) -> str:
    """Return an address that may have been given with its prefix length."""
    return address.partition("/")[0]


def _one_for_each_code(rates_bps: tuple[int, ...]) -> tuple[int, ...]:
    if len(rates_bps) != CODES:
        raise InvalidValueError(f"has {len(rates_bps)} items", valid=f"{CODES}")
    return rates_bps


def _one_for_each_class(quanta: tuple[int, ...]) -> tuple[int, ...]:
    if len(quanta) != CLASSES:
        raise InvalidValueError(f"has {len(quanta)} items", valid=f"{CLASSES}")
    return quanta


Quanta = Annotated[tuple[int, ...], _one_for_each_class]
IpAddress = Annotated[str, without_prefix]
IntRates = Annotated[tuple[int, ...], _one_for_each_code]


@dataclass(frozen=True)
class NicConfig:
    """One NIC port, on one plane. `base_round_trip_ps` is that of an idle path to the farthest peer.

    `nearest_round_trip_ps` is that to the nearest, with `nearest_hops` routers (0: nobody knows); each one more adds
    `hop_round_trip_ps`.

    `pfc_quanta`: the port obeys PFC, and would ask for pauses of so many quanta; 0: it takes no part. `credits`: of its
    link, None where it has none. `class_of_dscp`: the class in which a frame from an interface was sent, for credits.
    `quantum_bytes`: what each of the eight classes may send a round, 0 for strict ones.
    """

    interface: str
    mac: str
    ipv4: IpAddress
    gateway_mac: str
    rate_bps: int
    base_round_trip_ps: int
    nearest_round_trip_ps: int = 0
    nearest_hops: int = 0
    hop_round_trip_ps: int = 0
    ipv6: IpAddress | None = None
    paced: bool = True
    pfc_quanta: int = 0
    credits: transport_settings.CreditSettings | None = None
    class_of_dscp: Mapping[int, int] = field(default_factory=dict)
    quantum_bytes: Quanta = (0,) * CLASSES


@dataclass(frozen=True)
class ScaleUpConfig:
    """The links between the ranks of a host that are processes of their own.

    `ranks` are those of the ports, in order; `sockets` are descriptors of stream sockets to the other ranks' processes.
    """

    ranks: tuple[int, ...]
    rate_bps: int
    latency_ps: int
    sockets: Mapping[int, int]


@dataclass(frozen=True)
class HostConfig:
    """A host's configuration: NICs, clock, transport. An endpoint process reads it first, as a line of JSON.

    `entropy_seed` draws the source ports that the host chooses, `seed` all else.
    Times of the wall clock are real nanoseconds, all others emulated. `wall_clock_floor_ns`: least retransmission
    timeout in real time. `realtime_priority`: of the engine's thread under SCHED_FIFO, 0 for none. `scale_up`: of a
    rank of a host of several. `metrics_socket`: where the process says what it has counted, a path;
    `control_socket`: where it takes an operator's commands; `verbs_socket`: where programs find its RDMA device;
    `verbs_listener`: the descriptor of that socket, where it listens already.
    `verbs_device`: the folder of that device, with the counters that it writes for those who connect to
    `counters_socket`. `plane_addresses`: of every host, by plane, each IP version apart, for programs whose queue pairs
    of MRC use all planes and name one. `ip`: how its NICs take part in IP, of a host that has no kernel. `ev_paths`:
    the paths that EVs of its transport name; None: switches hash EVs. `compute_scale` lengthens its computations.
    """

    name: str
    rank: int
    epoch_ns: int
    nics: tuple[NicConfig, ...]
    dilation: float = 1.0
    seed: int = 0
    entropy_seed: int = 0
    mtu_bytes: int = DEFAULT_MTU_BYTES
    wall_clock_floor_ns: int = DEFAULT_WALL_CLOCK_FLOOR_NS
    realtime_priority: int = 0
    transport: transport_settings.TransportSettings = transport_settings.DEFAULT_TRANSPORT
    paths: transport_settings.PathTraits = transport_settings.NO_TRAITS
    segments: transport_settings.SegmentSettings = transport_settings.NO_SEGMENTS
    nic_costs: transport_settings.NicCosts = transport_settings.NO_COSTS
    protocols: ProtocolSettings = DEFAULT_PROTOCOLS
    recording: HostRecording = field(default_factory=HostRecording)
    int_rates_bps: IntRates = STANDARD_INT_RATES
    scale_up: ScaleUpConfig | None = None
    metrics_socket: str | None = None
    control_socket: str | None = None
    verbs_socket: str | None = None
    verbs_listener: int | None = None
    verbs_device: str | None = None
    counters_socket: str | None = None
    plane_addresses: tuple[tuple[IpAddress, ...], ...] = ()
    ip: tuple[IpNicConfig, ...] | None = field(default=None, metadata=IN_PROCESS)
    compute_scale: float = 1.0
    ev_paths: EvPaths | None = field(default=None, metadata=IN_PROCESS)
