"""How long a message takes on an idle path: slowdown compares flow completion times with it."""

from __future__ import annotations

from weft.topologies import FabricSpec, LinkSpec, serialisation_ps
from weft.topologies.addressing import IpVersion
from weft.topologies.paths import ports_towards
from weft.traffic.header_sizes import AETH, IMMEDIATE, PAD, RETH, overhead_bytes


class IdealTimes:
    """Completion times of RDMA WRITEs with immediate over an idle fabric, to the acknowledgement's arrival.

    Store and forward over the links of a shortest path, each switch with its latency, no window in the way.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        mtu_bytes: int,
        ip_version: IpVersion = 4,
        int_telemetry: bool = True,
        switch_latency_ps: int = 0,
    ) -> None:
        self._fabric = fabric
        self._switch_latency_ps = switch_latency_ps
        self._mtu_bytes = mtu_bytes
        self._outer_bytes = overhead_bytes(ip_version, int_telemetry)
        self._links: dict[tuple[str, str, int], tuple[LinkSpec, ...]] = {}
        self._times: dict[tuple[tuple[LinkSpec, ...], int], int] = {}

    def completion_ps(self, source: str, destination: str, plane: int, size_bytes: int) -> int:
        """Return the time of a message from one host to another in a plane."""
        links = self._links_between(source, destination, plane)
        key = (links, size_bytes)
        if key not in self._times:
            acknowledgement_ps = sum(
                serialisation_ps(self._outer_bytes + AETH, link.rate_bps) + link.delay_ps for link in links
            )
            latencies_ps = 2 * (len(links) - 1) * self._switch_latency_ps
            self._times[key] = self._data_ps(links, size_bytes) + acknowledgement_ps + latencies_ps
        return self._times[key]

    def _data_ps(self, links: tuple[LinkSpec, ...], size_bytes: int) -> int:
        """Return when the last bit arrives: a frame is sent once it has arrived and the one before has been sent."""
        packets = max(1, -(-size_bytes // self._mtu_bytes))
        # Between the first and the last all frames are alike, and after as many as there are links each takes as long
        # as it takes the slowest link: those need not be followed one by one.
        followed = min(packets, 2 * len(links) + 4)
        full = self._outer_bytes + self._mtu_bytes
        frames = [full] * followed
        rest = size_bytes - (packets - 1) * self._mtu_bytes
        frames[-1] = self._outer_bytes + rest + -rest % PAD
        frames[0] += RETH
        frames[-1] += IMMEDIATE
        free_ps = [0] * len(links)
        for number, frame in enumerate(frames):
            if number == followed - 1:
                skipped = packets - followed
                slowest = max(serialisation_ps(full, link.rate_bps) for link in links)
                free_ps = [free + skipped * slowest for free in free_ps]
            arrived_ps = 0
            for hop, link in enumerate(links):
                free_ps[hop] = max(arrived_ps, free_ps[hop]) + serialisation_ps(frame, link.rate_bps)
                arrived_ps = free_ps[hop]
        return free_ps[-1] + sum(link.delay_ps for link in links)

    def _links_between(self, source: str, destination: str, plane: int) -> tuple[LinkSpec, ...]:
        first, last = self._fabric.host(source).nic(plane), self._fabric.host(destination).nic(plane)
        key = (first.switch, last.switch, plane)
        if key not in self._links:
            self._links[key] = self._links_between_switches(first.switch, last.switch)
        return (first.link, *self._links[key], last.link)

    def _links_between_switches(self, first: str, last: str) -> tuple[LinkSpec, ...]:
        links = []
        while first != last:
            port = next(ports_towards(self._fabric, first, last))
            links.append(port.link)
            first = port.peer.node
        return tuple(links)
