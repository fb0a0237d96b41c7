"""Closed forms for times and bytes of messages on idle links, used for bounds on runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from weft.recording.ideal_times import (
    READ_REQUEST,
    READ_RESPONSE,
    WRITE,
    Framing,
    IdealTimes,
    MessageKind,
)
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec, ScaleUpSpec, serialisation_ps
from weft.traffic.header_sizes import PAD
from weft.traffic.jobs.native_job import STRIPE_BYTES
from weft.traffic.jobs.rank_job import SHARE_UNIT, shares_of_planes
from weft.traffic.striping import joined


class MessageTimes:
    """Times of messages between two ranks of a fabric over a shortest path with store-and-forward switches.

    Messages of `STRIPE_BYTES` or more are divided among the `planes`, by default those of all traffic; smaller ones use
    the fastest plane.
    """

    def __init__(
        self, fabric: FabricSpec, options: FabricOptions, source: int, destination: int, planes: Sequence[int] = ()
    ) -> None:
        planes = planes or fabric.training_planes
        self.framing = Framing.of_fabric(options)
        self._framings = {kind: Framing.of_fabric(options, kind=kind) for kind in (WRITE, READ_REQUEST, READ_RESPONSE)}
        self._ideal = {
            kind: IdealTimes(fabric, framing, options.switching.latency) for kind, framing in self._framings.items()
        }
        self._acknowledges_reads = options.transport.kind.acknowledges_reads
        self._source, self._destination = source, destination
        rates_bps = fabric.nic_rates_bps(planes)
        first_nic = fabric.first_nics[planes[0]]
        self.nic_rate_bps = sum(rates_bps)
        """Total rate of the source's links to the fabric."""
        self._shares = shares_of_planes(joined(rates_bps) if self.framing.spans_planes else rates_bps)
        self._slowest_bps = min(rate_bps for rate_bps, _ in self._ideal[WRITE].links(source, destination, first_nic))
        self.has_slower_links = self._slowest_bps < rates_bps[first_nic]
        """Whether a link of the path is slower than the source's link."""
        self._known: dict[tuple[int, MessageKind], int] = {}

    def sent_ps(self, frame_bytes: int) -> int:
        """Return how long a frame occupies the slowest link of the path."""
        return serialisation_ps(frame_bytes, self._slowest_bps)

    def one_way_ps(self, size_bytes: int, kind: MessageKind) -> int:
        """Return the time from the first bit sent to the last bit received."""
        key = (size_bytes, kind)
        if key not in self._known:
            self._known[key] = self._arrival_ps(size_bytes, kind)
        return self._known[key]

    def _arrival_ps(self, size_bytes: int, kind: MessageKind) -> int:
        is_striped = size_bytes >= STRIPE_BYTES
        planes, ends = self._shares
        sizes = np.full(len(planes), size_bytes, np.int64)
        if is_striped:
            sizes = np.diff([size_bytes * end // SHARE_UNIT for end in (0, *ends)]).astype(np.int64)
        pair = np.full(len(planes), self._source), np.full(len(planes), self._destination)
        arrivals = self._ideal[kind].arrivals(*pair, np.array(planes, np.int64), sizes)
        return int(arrivals.max() if is_striped else arrivals.min())

    def wire_bytes(self, size_bytes: int, kind: MessageKind) -> int:
        """Return the bytes of all frames of a message."""
        packets = max(1, -(-size_bytes // self.framing.mtu_bytes))
        own = self._framings[kind].kind
        headers = own.first + own.last if packets > 1 else own.only
        return packets * self._framings[kind].overhead_bytes + headers + -(-size_bytes // PAD) * PAD

    @property
    def acknowledgement_bytes(self) -> int:
        """Bytes of an acknowledgement."""
        return self.framing.acknowledgement_bytes

    @property
    def before_data_ps(self) -> int:
        """Return how long an acknowledgement of a READ holds its data back."""
        return self.sent_ps(self.acknowledgement_bytes) if self._acknowledges_reads else 0


class HostTimes:
    """Times of messages between two ranks of a host over its scale-up links, which add no headers."""

    acknowledgement_bytes = 0
    before_data_ps = 0

    def __init__(self, scale_up: ScaleUpSpec) -> None:
        self._scale_up = scale_up
        self.nic_rate_bps = scale_up.rate_bps
        """Rate of a rank's port."""

    def sent_ps(self, size_bytes: int) -> int:
        """Return how long a message occupies the links."""
        return serialisation_ps(size_bytes, self._scale_up.rate_bps)

    def one_way_ps(self, size_bytes: int, _: MessageKind) -> int:
        """Return the time from the first bit sent to the last bit received."""
        return self.sent_ps(size_bytes) + self._scale_up.latency_ps

    def wire_bytes(self, size_bytes: int, _: MessageKind) -> int:
        """Return the bytes of the message itself."""
        return size_bytes


Way = MessageTimes | HostTimes
"""Path from one rank to another."""


class ServiceNetwork:
    """Paths between clients and servers over some planes, by default those of all traffic, by their ranks.

    Pairs with equal NICs at the same switches share one path.

    Attributes:
        first: a path over the fabric; None if a pair shares a host, as the bound of the fabric's links is then unknown.
        across: a path over the fabric; None if all pairs share a host.
        inside: the path within hosts; None if no pair shares a host.
        has_slower_links: whether a path over the fabric has a link slower than the client's.
        has_round_trips: whether an idle fabric's times are lower bounds: switches store and forward.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        options: FabricOptions,
        clients: Sequence[int],
        servers: Sequence[int],
        planes: Sequence[int] = (),
    ) -> None:
        planes = planes or fabric.training_planes
        known: dict[tuple[object, ...], MessageTimes] = {}
        scale_up = fabric.scale_up
        inside = None if scale_up is None else HostTimes(scale_up)
        self._of_clients: list[Counter[Way]] = []
        for client in clients:
            ways: Counter[Way] = Counter()
            for server in servers:
                if scale_up is not None and inside is not None and scale_up.share_a_host(client, server):
                    ways[inside] += 1
                    continue
                nics = [fabric.hosts[rank].nic(fabric.first_nics[planes[0]]) for rank in (client, server)]
                key = tuple((nic.switch, nic.link) for nic in nics)
                if key not in known:
                    known[key] = MessageTimes(fabric, options, client, server, planes)
                ways[known[key]] += 1
            self._of_clients.append(ways)
        within_hosts = inside is not None and any(inside in ways for ways in self._of_clients)
        self.across = next(iter(known.values()), None)
        self.inside = inside if within_hosts else None
        self.first = None if within_hosts else self.across
        shared = Counter(
            server for server in servers for client in clients if scale_up and scale_up.share_a_host(client, server)
        )
        self._inside_of_servers = [shared[server] for server in servers]
        self.has_slower_links = any(way.has_slower_links for way in known.values())
        self.has_round_trips = not options.switching.cut_through
        self.planes = sum(len(fabric.nics_of_planes[plane]) for plane in planes)
        self._outstanding_reads = options.transport.max_outstanding_reads

    def reads_of_a_pair(self, size_bytes: int) -> float:
        """Return how many READs of a size may be outstanding between two ranks; striped ones use every plane.

        If a pair shares a host, this is infinity: nothing limits READs there.
        """
        if self.inside is not None:
            return math.inf
        return self._outstanding_reads * (1 if size_bytes >= STRIPE_BYTES else self.planes)

    def busiest_server_ps(self, value: Callable[[Way], float]) -> float:
        """Return the most that a server's links are occupied if every client has one response from it.

        `value` returns for how long a response occupies the links of a path. A server's links to the fabric and its
        port within the host count separately.
        """
        return self._busiest_ps(value, self._inside_of_servers, len(self._of_clients))

    def busiest_client_ps(self, value: Callable[[Way], float]) -> float:
        """Return the most that a client's links are occupied if it has one response from every server."""
        inside = [0 if self.inside is None else ways[self.inside] for ways in self._of_clients]
        return self._busiest_ps(value, inside, len(self._inside_of_servers))

    def _busiest_ps(self, value: Callable[[Way], float], inside: Sequence[int], peers: int) -> float:
        busy = [0.0]
        if self.across is not None:
            busy.append(value(self.across) * (peers - min(inside)))
        if self.inside is not None:
            busy.append(value(self.inside) * max(inside))
        return max(busy)

    def means(self, value: Callable[[Way], float]) -> list[float]:
        """Return for each client the mean of a value over its paths to all servers."""
        return [sum(value(way) * count for way, count in ways.items()) / ways.total() for ways in self._of_clients]

    def mean(self, value: Callable[[Way], float]) -> float:
        """Return the mean of a value over all paths."""
        found = self.means(value)
        return sum(found) / len(found)


def read_ps(size_bytes: int, way: Way) -> int:
    """Return the time of a READ's request and response."""
    return way.one_way_ps(0, READ_REQUEST) + way.before_data_ps + way.one_way_ps(size_bytes, READ_RESPONSE)
