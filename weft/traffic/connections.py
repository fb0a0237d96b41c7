"""The connections between ranks: made when a run needs them, numbered, dropped."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from weft.traffic.commands.connections import Connect, Connection, Disconnect, PlaneAddress
from weft.traffic.commands.flows import PeerPlanes, WorkloadFlow
from weft.traffic.endpoint_calls import EndpointCalls
from weft.traffic.host_config import HostConfig
from weft.traffic.lane_schedule import Schedule
from weft.traffic.patterns import Flow
from weft.traffic.schedule_nodes import Channel
from weft.traffic.schedules import peers_of

FIRST_QUEUE_PAIR = 0x100
_PSN_BITS = 24
RequirePath = Callable[[int, int, int], None]
"""Raises an error if nothing joins two ranks' NICs of a number."""


class Connections:
    """Existing connections, and the next numbers of queue pairs; over IPv4 or IPv6 as `ip_version` says."""

    def __init__(
        self,
        calls: EndpointCalls,
        hosts: Sequence[HostConfig],
        ip_version: int,
        require_path: RequirePath,
    ) -> None:
        self._calls = calls
        self._hosts = hosts
        self._ip_version = ip_version
        # Drawn from the seed: a first sequence number decides when it wraps, so results would differ from run to run.
        self._psn = random.Random(hosts[0].seed if hosts else 0)
        self._next_queue_pair = [count(FIRST_QUEUE_PAIR) for _ in hosts]
        self._connected: dict[tuple[int, Channel], bool] = {}
        self._require_path = require_path

    def disconnect(self, first_number: int | None = None, *, all_hosts: bool = False) -> None:
        """See `EndpointGroup.disconnect`; `all_hosts`: whether or not there are connections."""
        if self._connected or all_hosts:
            self._calls.each(Disconnect())
        self._connected.clear()
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
        before = dict(self._connected)
        ends: dict[int, list[Connection]] = {}
        try:
            for rank, channel in channels:
                # A queue pair's packets carry INT or not for its whole life, so the other kind needs another
                # connection.
                if self._connected.get((rank, channel)) != telemetry:
                    self._require_paths(self._calls.host_of(rank), self._calls.host_of(channel.peer), channel.plane)
                    self._connect_ends(rank, channel, telemetry, ends)
            self._calls.all({rank: Connect(tuple(connections)) for rank, connections in ends.items()})
        except BaseException:
            # Refused or interrupted: connections that may be missing are created again.
            self._connected = before
            raise

    def _connect_ends(
        self, rank: int, channel: Channel, telemetry: bool, connections: dict[int, list[Connection]]
    ) -> None:
        back = channel.towards(rank)
        ends = [(rank, channel), (channel.peer, back)]
        queue_pairs = self._take_numbers(rank, channel.peer)
        psns = [self._psn.getrandbits(_PSN_BITS) for _ in ends]
        for side, (own, towards) in enumerate(ends):
            connections.setdefault(own, []).append(
                Connection(
                    **{name: getattr(towards, name) for name in Channel.__dataclass_fields__},
                    queue_pair=queue_pairs[side],
                    remote_queue_pair=queue_pairs[1 - side],
                    destination_ip=self._address(towards),
                    initial_psn=psns[side],
                    remote_initial_psn=psns[1 - side],
                    telemetry=telemetry and not towards.is_clearance,
                    more_planes=() if towards.is_scale_up else self.more_planes(own, towards.peer, towards.plane),
                )
            )
            self._connected[own, towards] = telemetry

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
            self._require_path(host, peer, plane)

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
