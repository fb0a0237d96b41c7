"""The connections between ranks: made when a run needs them, numbered, dropped."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from weft.errors import InvalidValueError
from weft.traffic.commands.connections import (
    Connect,
    Connection,
    Disconnect,
    Outgoing,
    PlaneAddress,
    RelayedConnection,
)
from weft.traffic.commands.flows import PeerPlanes, WorkloadFlow
from weft.traffic.endpoint_calls import EndpointCalls
from weft.traffic.host_config import HostConfig
from weft.traffic.lane_schedule import Schedule
from weft.traffic.patterns import Flow
from weft.traffic.schedule_nodes import Channel
from weft.traffic.schedules import peers_of

FIRST_QUEUE_PAIR = 0x100
_PSN_BITS = 24


class Ways(Protocol):
    """How the NICs of a number of two hosts, by index, reach each other. `weft.topologies.FabricSpec` says what."""

    def require_path(self, source: int, destination: int, nic: int) -> None:
        """Raise an error if nothing joins them."""

    def relay(self, source: int, destination: int, nic: int) -> int | None:
        """Return the rank of the source's host that takes its messages first; None if its own NIC does. Raises."""


class DirectWays:
    """Every two hosts are joined."""

    def require_path(self, source: int, destination: int, nic: int) -> None:
        """See Ways."""

    def relay(self, source: int, destination: int, nic: int) -> int | None:
        """See Ways."""
        return None


@dataclass
class _Ends:
    """Connections that a rank is to make."""

    connections: list[Connection] = field(default_factory=list)
    relayed: list[RelayedConnection] = field(default_factory=list)


class Connections:
    """Existing connections, and the next numbers of queue pairs; over IPv4 or IPv6 as `ip_version` says."""

    def __init__(
        self,
        calls: EndpointCalls,
        hosts: Sequence[HostConfig],
        ip_version: int,
        ways: Ways,
    ) -> None:
        self._calls = calls
        self._hosts = hosts
        self._ip_version = ip_version
        # Drawn from the seed: a first sequence number decides when it wraps, so results would differ from run to run.
        self._psn = random.Random(hosts[0].seed if hosts else 0)
        self._next_queue_pair = [count(FIRST_QUEUE_PAIR) for _ in hosts]
        self._connected: dict[tuple[int, Channel], bool] = {}
        # The rank that sends on, of connections with one.
        self._relays: dict[tuple[int, Channel], int] = {}
        self._ways = ways

    def disconnect(self, first_number: int | None = None, *, all_hosts: bool = False) -> None:
        """See `EndpointGroup.disconnect`; `all_hosts`: whether or not there are connections."""
        if self._connected or all_hosts:
            self._calls.each(Disconnect())
        self._connected.clear()
        self._relays.clear()
        if first_number is not None:
            self._next_queue_pair = [count(FIRST_QUEUE_PAIR + first_number) for _ in self._hosts]

    def forget(self, connections: Iterable[tuple[int, Channel]]) -> None:
        """Have connections created again by the next run that needs them."""
        for connection in connections:
            self._connected.pop(connection, None)

    def _take_numbers(self, *ranks: int) -> list[int]:
        """Return the number of a new queue pair at each of the ranks."""
        return [next(self._next_queue_pair[self._calls.host_of(rank)]) for rank in ranks]

    def telemetry_of(self, connection: tuple[int, Channel]) -> bool:
        """Return whether a connection's packets carry INT."""
        return self._connected.get(connection, False)

    def connect(self, schedules: Sequence[Schedule], telemetry: bool) -> None:
        """Make the connections that the schedules name and that are not there yet, both ends at once."""
        self.connect_channels(peers_of(schedules), telemetry)

    def connect_channels(self, channels: Iterable[tuple[int, Channel]], telemetry: bool) -> None:
        """The same of ranks' channels."""
        before, relays = dict(self._connected), dict(self._relays)
        ends: dict[int, _Ends] = defaultdict(_Ends)
        try:
            for rank, channel in channels:
                # A queue pair's packets carry INT or not for its whole life, so the other kind needs another
                # connection.
                if self._connected.get((rank, channel)) != telemetry:
                    relay = self._relay(rank, channel)
                    if relay is None or relay == self._calls.host_of(channel.peer):
                        self._connect_ends(rank, channel, telemetry, ends, within_host=relay is not None)
                    else:
                        self._connect_by_relays(rank, channel, telemetry, ends)
            commands = {rank: Connect(tuple(each.connections), tuple(each.relayed)) for rank, each in ends.items()}
            self._calls.all(commands)
        except BaseException:
            # Refused or interrupted: connections that may be missing are created again.
            self._connected, self._relays = before, relays
            raise

    def _relay(self, rank: int, channel: Channel) -> int | None:
        """Return the rank of its host to which a rank hands a channel's messages; None for its own NIC. Raises."""
        if channel.is_scale_up:
            return None
        source, destination = self._calls.host_of(rank), self._calls.host_of(channel.peer)
        relay: int | None = None
        for plane in self._planes(source, destination, channel.plane):
            # It is the same rank in every plane that needs one.
            relay = self._ways.relay(source, destination, plane) if relay is None else relay
        if relay is not None and relay != destination:
            self._require_paths(relay, destination, channel.plane)
        if relay is not None and channel.clear_to_send is not None:
            raise InvalidValueError(
                f"clear_to_send from {self._hosts[source].name} to {self._hosts[destination].name}, "
                f"for which {self._hosts[relay].name} sends on",
                valid="between ranks of a rail",
            )
        return relay

    def relay_of(self, connection: tuple[int, Channel]) -> int | None:
        """Return the rank of its host to which an end of a connection hands its messages; None for its own NIC."""
        return self._relays.get(connection)

    def _connect_by_relays(self, rank: int, channel: Channel, telemetry: bool, ends: dict[int, _Ends]) -> None:
        """Connect each end to its relay, and each relay to the other end.

        Hosts of several ranks have no spares, so that their ranks and indices are the same.
        """
        both = ((rank, channel), (channel.peer, channel.towards(rank)))
        relays: list[int] = []
        for end in both:
            relay = self._relay(*end)
            assert relay is not None, "ranks of different rails change them both ways"
            relays.append(relay)
        inside = [self._take_numbers(own, relay) for (own, _), relay in zip(both, relays, strict=True)]
        # One queue pair for each direction: from a relay to the end that its messages are for.
        between = [self._take_numbers(relay, end.peer) for (_, end), relay in zip(both, relays, strict=True)]
        psns = [[self._psn.getrandbits(_PSN_BITS) for _ in range(2)] for _ in both]
        for side, (own, towards) in enumerate(both):
            relay, back = relays[side], relays[1 - side]
            ends[relay].relayed.append(
                RelayedConnection(
                    source=own,
                    source_number=inside[side][0],
                    number=inside[side][1],
                    connection=self._connection(
                        relay, towards, towards.peer, between[side], psns[side], telemetry=telemetry
                    ),
                )
            )
            ends[own].connections.append(
                self._connection(
                    own,
                    towards,
                    back,
                    between[1 - side][::-1],
                    psns[1 - side][::-1],
                    telemetry=telemetry,
                    outgoing=Outgoing(relay, *inside[side]),
                )
            )
            self._connected[own, towards] = telemetry
            self._relays[own, towards] = relay

    def _connect_ends(
        self, rank: int, channel: Channel, telemetry: bool, ends: dict[int, _Ends], *, within_host: bool
    ) -> None:
        both = ((rank, channel), (channel.peer, channel.towards(rank)))
        queue_pairs = self._take_numbers(rank, channel.peer)
        psns = [self._psn.getrandbits(_PSN_BITS) for _ in both]
        for side, (own, towards) in enumerate(both):
            step = -1 if side else 1
            ends[own].connections.append(
                self._connection(
                    own,
                    towards,
                    towards.peer,
                    queue_pairs[::step],
                    psns[::step],
                    telemetry=telemetry,
                    within_host=within_host,
                )
            )
            self._connected[own, towards] = telemetry
            self._relays.pop((own, towards), None)
            if within_host:
                self._relays[own, towards] = self._calls.host_of(towards.peer)

    def _connection(
        self,
        rank: int,
        channel: Channel,
        far: int,
        queue_pairs: Sequence[int],
        psns: Sequence[int],
        *,
        telemetry: bool,
        outgoing: Outgoing | None = None,
        within_host: bool = False,
    ) -> Connection:
        """Return a rank's end of a channel; its queue pair's other end is at rank `far`. Numbers: own, other end's."""
        return Connection(
            **{name: getattr(channel, name) for name in Channel.__dataclass_fields__},
            queue_pair=queue_pairs[0],
            remote_queue_pair=queue_pairs[1],
            destination_ip=self._address(channel.towards(far)),
            initial_psn=psns[0],
            remote_initial_psn=psns[1],
            telemetry=telemetry and not channel.is_clearance,
            more_planes=() if channel.is_scale_up or within_host else self.more_planes(rank, far, channel.plane),
            outgoing=outgoing,
            within_host=within_host,
        )

    @property
    def spans_planes(self) -> bool:
        """Whether a queue pair uses all planes that both hosts have."""
        return bool(self._hosts) and self._hosts[0].transport.kind.spans_planes

    def _planes(self, host: int, peer: int, first: int) -> list[int]:
        """Return the planes of a queue pair between hosts: all that both have, if its kind uses several."""
        if not self.spans_planes:
            return [first]
        both = min(len(self._hosts[each].nics) for each in (host, peer))
        return [first, *(plane for plane in range(both) if plane != first)]

    def _require_paths(self, host: int, peer: int, first: int) -> None:
        for plane in self._planes(host, peer, first):
            self._ways.require_path(host, peer, plane)

    def more_planes(self, rank: int, peer: int, first: int) -> tuple[PlaneAddress, ...]:
        """Return where a queue pair of a rank reaches a peer on planes besides the first. Raises as `connect`."""
        planes = self._planes(self._calls.host_of(rank), self._calls.host_of(peer), first)
        return tuple(PlaneAddress(plane, self._address(Channel(plane, peer))) for plane in planes[1:])

    def planes_of_peers(
        self, rank: int, sent: Sequence[WorkloadFlow], received: Sequence[WorkloadFlow]
    ) -> tuple[PeerPlanes, ...]:
        """Return the addresses on planes besides the first of those with whom a rank exchanges flows."""
        if not self.spans_planes:
            return ()
        peers = sorted({each.peer for each in (*sent, *received)})
        return tuple(PeerPlanes(peer, self.more_planes(rank, peer, 0)) for peer in peers)

    def of_workload(self, flows: Sequence[Flow]) -> tuple[list[list[WorkloadFlow]], list[list[WorkloadFlow]]]:
        """Return what each rank sends and what it receives of flows with new queue pairs each, which hosts make."""
        sent: list[list[WorkloadFlow]] = [[] for _ in self._hosts]
        received: list[list[WorkloadFlow]] = [[] for _ in self._hosts]
        for index, flow in enumerate(flows):
            plane = 0 if self.spans_planes else flow.plane
            self._require_paths(flow.source, flow.destination, plane)
            ends = [(flow.source, flow.destination), (flow.destination, flow.source)]
            pairs = self._take_numbers(flow.source, flow.destination)
            for side, ((own, peer), items) in enumerate(zip(ends, (sent, received), strict=True)):
                items[own].append(
                    WorkloadFlow(
                        index,
                        flow.start_ps,
                        plane,
                        flow.size_bytes,
                        peer,
                        self._address(Channel(plane, peer)),
                        pairs[side],
                        pairs[1 - side],
                    )
                )
        return sent, received

    def _address(self, channel: Channel) -> str:
        """Return the IP address at the far end of a channel. Raises ValueError if it has none of the IP version."""
        host = self._hosts[self._calls.host_of(channel.peer)]
        nic = host.nics[channel.plane]
        address = nic.ipv6 if self._ip_version == 6 else nic.ipv4
        if address is None:
            raise ValueError(f"{host.name} has no IPv6 address on plane {channel.plane}")
        return address
