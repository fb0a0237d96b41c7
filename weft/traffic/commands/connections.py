"""Commands for queue pairs: make, remove, suspend and detour them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from weft.quantities.traffic_classes import DATA_CLASS
from weft.traffic.answers import Done, Suspended
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.commands.base import Command
from weft.traffic.messages import Between
from weft.traffic.protocols import NONE, ProtocolName
from weft.traffic.schedule_nodes import Channel, TrafficClass
from weft.traffic.transport_settings import DEFAULTS

QueuePairNumber = Annotated[int, Between(0, (1 << 24) - 1)]
PacketSequenceNumber = Annotated[int, Between(0, (1 << 24) - 1)]
UdpPort = Annotated[int, Between(0, (1 << 16) - 1)]


@dataclass(frozen=True)
class PlaneAddress:
    """A peer's address on a plane."""

    plane: int
    destination_ip: str


@dataclass(frozen=True)
class Outgoing:
    """Where a connection's messages go first: to a rank of the same host, which sends them on; channels' numbers."""

    relay: int
    number: QueuePairNumber
    relay_number: QueuePairNumber


@dataclass(frozen=True)
class Connection:
    """A queue pair to make. Over scale-up links it needs no address. It uses `more_planes`, too, if its kind can.

    One that is `within_host` goes over scale-up links whatever its label. With `outgoing`, messages to the peer go over
    scale-up links and a relay, and the queue pair receives from the peer's relay.
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
    retry_limit: Annotated[int, Between(0)] = DEFAULTS["retry_limit"]
    traffic_class: TrafficClass = DATA_CLASS
    protocol: ProtocolName = NONE
    clear_to_send: ClearToSend | None = None
    is_clearance: bool = False
    more_planes: tuple[PlaneAddress, ...] = ()
    outgoing: Outgoing | None = None
    within_host: bool = False

    @property
    def channel(self) -> Channel:
        """The channel that it carries."""
        return Channel(**{name: getattr(self, name) for name in Channel.__dataclass_fields__})


@dataclass(frozen=True)
class RelayedConnection:
    """Messages that a rank sends on for `source`, of the same host, by a queue pair to its peer; channels' numbers."""

    source: int
    source_number: QueuePairNumber
    number: QueuePairNumber
    connection: Connection


@dataclass(frozen=True)
class Connect(Command[Done], name="connect"):
    """Make queue pairs, in place of those to the same peers with the same labels (`relayed`: of the same sources)."""

    connections: tuple[Connection, ...] = ()
    relayed: tuple[RelayedConnection, ...] = ()


@dataclass(frozen=True)
class Disconnect(Command[Done], name="disconnect"):
    """Remove connections of a label, or all."""

    label: str | None = None


@dataclass(frozen=True)
class Suspend(Command[Suspended], name="suspend"):
    """Stop connections on a lost plane, and keep the messages that peers have not acknowledged."""

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
