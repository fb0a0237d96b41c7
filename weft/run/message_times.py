"""Times and bytes of messages on idle links, in closed form: for bounds of what a run can reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.recording.ideal_times import Framing
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec, serialisation_ps, shortest_path
from weft.traffic.header_sizes import AETH, IMMEDIATE, PAD, RETH
from weft.traffic.jobs.native_job import STRIPE_BYTES


@dataclass(frozen=True)
class MessageKind:
    """Header bytes that a message's first and last packet have besides those of all packets."""

    first: int
    last: int


WRITE = MessageKind(first=RETH, last=IMMEDIATE)
READ_REQUEST = MessageKind(first=RETH, last=0)
READ_RESPONSE = MessageKind(first=AETH, last=AETH)


class MessageTimes:
    """Of messages between two ranks of a fabric over one of the shortest paths, stored and forwarded by each switch.

    Messages from `STRIPE_BYTES` on are divided among the planes.
    """

    def __init__(self, fabric: FabricSpec, options: FabricOptions, source: int, destination: int) -> None:
        hosts = fabric.hosts
        path = shortest_path(fabric, hosts[source].name, hosts[destination].name, 0)
        self._links = [hop.link for hop in path.hops]
        self._delays_ps = sum(link.delay_ps for link in self._links)
        self._delays_ps += (len(self._links) - 1) * options.switching.latency
        self._planes = fabric.nics_per_host
        self.framing = Framing(options.mtu_bytes, options.int_telemetry, options.ip_version)

    @property
    def nic_rate_bps(self) -> int:
        """Return the rate of all of the source's links to the fabric."""
        return self._links[0].rate_bps * self._planes

    def sent_ps(self, frame_bytes: int) -> int:
        """Return how long the slowest link of the path is busy with a frame."""
        return serialisation_ps(frame_bytes, min(link.rate_bps for link in self._links))

    def one_way_ps(self, size_bytes: int, kind: MessageKind) -> int:
        """Return the time from the first bit sent to the last one received."""
        size_bytes = -(-size_bytes // self._planes) if size_bytes >= STRIPE_BYTES else size_bytes
        frames = self._frames(size_bytes, kind)
        first = sum(serialisation_ps(frames[0], link.rate_bps) for link in self._links)
        full = self.framing.overhead_bytes + self.framing.mtu_bytes
        behind = (len(frames) > 2) * (len(frames) - 2) * self.sent_ps(full)
        last = self.sent_ps(frames[-1]) if len(frames) > 1 else 0
        return first + behind + last + self._delays_ps

    def wire_bytes(self, size_bytes: int, kind: MessageKind) -> int:
        """Return the bytes of all of a message's frames."""
        return sum(self._frames(size_bytes, kind))

    @property
    def acknowledgement_bytes(self) -> int:
        """Return the size of an acknowledgement."""
        return self.framing.acknowledgement_bytes

    def _frames(self, size_bytes: int, kind: MessageKind) -> list[int]:
        full, rest = divmod(size_bytes, self.framing.mtu_bytes)
        payloads = [self.framing.mtu_bytes] * full
        if rest or not full:
            payloads.append(-(-rest // PAD) * PAD)
        frames = [self.framing.overhead_bytes + payload for payload in payloads]
        frames[0] += kind.first
        # A response of one packet has one AETH.
        if len(frames) > 1 or kind != READ_RESPONSE:
            frames[-1] += kind.last
        return frames


class ServiceNetwork:
    """The ways between clients and servers, by their ranks. Pairs of like NICs at the same switches share one."""

    def __init__(
        self, fabric: FabricSpec, options: FabricOptions, clients: Sequence[int], servers: Sequence[int]
    ) -> None:
        known: dict[tuple[object, ...], MessageTimes] = {}
        self._of_clients: list[Counter[MessageTimes]] = []
        for client in clients:
            ways: Counter[MessageTimes] = Counter()
            for server in servers:
                nics = [fabric.hosts[rank].nic(0) for rank in (client, server)]
                key = tuple((nic.switch, nic.link) for nic in nics)
                if key not in known:
                    known[key] = MessageTimes(fabric, options, client, server)
                ways[known[key]] += 1
            self._of_clients.append(ways)
        self.first = next(iter(known.values()))
        self.planes = fabric.nics_per_host

    def means(self, value: Callable[[MessageTimes], float]) -> list[float]:
        """Return of each client the mean of a value of the ways to all servers."""
        return [
            sum(value(way) * count for way, count in ways.items()) / ways.total() for ways in self._of_clients
        ]

    def mean(self, value: Callable[[MessageTimes], float]) -> float:
        """Return the mean of a value of all ways."""
        found = self.means(value)
        return sum(found) / len(found)
