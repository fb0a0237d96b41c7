"""The configuration of a host: one schema for both clocks, and for the line of JSON that an endpoint process reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from weft.topologies.int_rates import CODES, STANDARD_INT_RATES
from weft.traffic.host_recording import HostRecording
from weft.traffic.messages import Message, MessageError, take, take_list, take_optional
from weft.traffic.transport_settings import (
    DEFAULT_TRANSPORT,
    NO_COSTS,
    CreditSettings,
    NicCosts,
    TransportSettings,
)

DEFAULT_MTU_BYTES = 1024
DEFAULT_WALL_CLOCK_FLOOR_NS = 20_000_000


@dataclass(frozen=True)
class NicConfig:
    """One NIC port, on one plane. `base_round_trip_ps` is that of an idle path to the farthest peer.

    `nearest_round_trip_ps` is that to the nearest, with `nearest_hops` routers (0: nobody knows); each one more adds
    `hop_round_trip_ps`.

    `pfc_quanta`: the port obeys PFC, and would ask for pauses of so many quanta; 0: it takes no part. `credits`: of its
    link, None where it has none.
    """

    interface: str
    mac: str
    ipv4: str
    gateway_mac: str
    rate_bps: int
    base_round_trip_ps: int
    nearest_round_trip_ps: int = 0
    nearest_hops: int = 0
    hop_round_trip_ps: int = 0
    ipv6: str | None = None
    paced: bool = True
    pfc_quanta: int = 0
    credits: CreditSettings | None = None

    def to_message(self) -> dict[str, Any]:
        """Return an item of the configuration's `nics`, of JSON's types."""
        # asdict() looks into every value, and a large fabric has thousands of NICs.
        return vars(self) | {"credits": self.credits and asdict(self.credits)}

    @classmethod
    def from_message(cls, message: Message) -> NicConfig:
        """Read an item of the configuration's `nics`. Raises MessageError."""
        credits = take_optional(message, "credits", dict)
        return cls(
            interface=take(message, "interface", str),
            mac=take(message, "mac", str),
            ipv4=without_prefix(take(message, "ipv4", str)),
            ipv6=without_prefix(address) if (address := take_optional(message, "ipv6", str)) else None,
            gateway_mac=take(message, "gateway_mac", str),
            rate_bps=take(message, "rate_bps", int),
            base_round_trip_ps=take(message, "base_round_trip_ps", int),
            paced=take(message, "paced", bool, True),
            nearest_round_trip_ps=take(message, "nearest_round_trip_ps", int, 0),
            nearest_hops=take(message, "nearest_hops", int, 0),
            hop_round_trip_ps=take(message, "hop_round_trip_ps", int, 0),
            pfc_quanta=take(message, "pfc_quanta", int, 0),
            credits=CreditSettings.from_message(credits) if credits else None,
        )


@dataclass(frozen=True)
class HostConfig:
    """A host's configuration: NICs, clock, transport. An endpoint process reads it first, as a line of JSON.

    Times of the wall clock are real nanoseconds, all others emulated. `wall_clock_floor_ns`: least retransmission
    timeout in real time. `realtime_priority`: of the engine's thread under SCHED_FIFO, 0 for none.
    """

    name: str
    rank: int
    epoch_ns: int
    dilation: float
    nics: tuple[NicConfig, ...]
    seed: int = 0
    mtu_bytes: int = DEFAULT_MTU_BYTES
    wall_clock_floor_ns: int = DEFAULT_WALL_CLOCK_FLOOR_NS
    realtime_priority: int = 0
    transport: TransportSettings = DEFAULT_TRANSPORT
    nic_costs: NicCosts = NO_COSTS
    recording: HostRecording = field(default_factory=HostRecording)
    int_rates_bps: tuple[int, ...] = STANDARD_INT_RATES

    def to_message(self) -> dict[str, Any]:
        """Return the configuration in JSON's types, as it is sent to an endpoint process."""
        return vars(self) | {
            "nics": [nic.to_message() for nic in self.nics],
            "transport": self.transport.to_message(),
            "nic_costs": asdict(self.nic_costs),
            "recording": self.recording.to_message(),
            "int_rates_bps": list(self.int_rates_bps),
        }

    @classmethod
    def from_message(cls, message: Message) -> HostConfig:
        """Read the configuration. Raises MessageError."""
        return cls(
            name=take(message, "name", str),
            rank=take(message, "rank", int),
            epoch_ns=take(message, "epoch_ns", int),
            dilation=take(message, "dilation", float, 1.0),
            seed=take(message, "seed", int, 0),
            mtu_bytes=take(message, "mtu_bytes", int, DEFAULT_MTU_BYTES),
            wall_clock_floor_ns=take(message, "wall_clock_floor_ns", int, DEFAULT_WALL_CLOCK_FLOOR_NS),
            realtime_priority=take(message, "realtime_priority", int, 0),
            nics=tuple(NicConfig.from_message(nic) for nic in take_list(message, "nics", dict)),
            transport=TransportSettings.from_message(take(message, "transport", dict, {})),
            nic_costs=NicCosts.from_message(take(message, "nic_costs", dict, {})),
            recording=HostRecording.from_message(take(message, "recording", dict, {})),
            int_rates_bps=_int_rates(message),
        )


def without_prefix(address: str) -> str:
    """Return an address that may have been given with its prefix length."""
    return address.partition("/")[0]


def _int_rates(message: Message) -> tuple[int, ...]:
    if "int_rates_bps" not in message:
        return STANDARD_INT_RATES
    rates = tuple(take_list(message, "int_rates_bps", int))
    if len(rates) != CODES:
        raise MessageError(f"int_rates_bps has {len(rates)} items (valid: {CODES})")
    return rates
