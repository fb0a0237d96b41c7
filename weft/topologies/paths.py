"""Shortest paths between hosts, and what a path costs: base round-trip time and bandwidth-delay product."""

from __future__ import annotations

from dataclasses import dataclass

from weft.topologies.errors import TopologyError
from weft.topologies.fabric import FabricSpec, LinkSpec

PS_PER_SECOND = 10**12


@dataclass(frozen=True)
class Hop:
    """One transmission of a path: `node` sends out of `port` (a host's NIC index) over `link`."""

    node: str
    port: int
    link: LinkSpec


@dataclass(frozen=True)
class Path:
    """A path in one plane; `nodes` includes both hosts, `hops` has one fewer."""

    plane: int
    nodes: tuple[str, ...]
    hops: tuple[Hop, ...]

    @property
    def rate_bps(self) -> int:
        """Rate of the slowest link."""
        return min(hop.link.rate_bps for hop in self.hops)


def paths(fabric: FabricSpec, source: str, destination: str, plane: int | None = None) -> tuple[Path, ...]:
    """All shortest paths from host to host, in one plane or in all of them, in order of port numbers.

    Raises:
        TopologyError: an unknown host or plane, or source and destination are the same host.

    """
    if source == destination:
        raise TopologyError(f"a path needs two different hosts (got {source!r} twice)")
    fabric.host(source)
    fabric.host(destination)
    planes = range(fabric.planes) if plane is None else (plane,)
    return tuple(path for each in planes for path in _paths_in_plane(fabric, source, destination, each))


def _paths_in_plane(fabric: FabricSpec, source: str, destination: str, plane: int) -> list[Path]:
    first = fabric.host(source).nic(plane)
    last = fabric.host(destination).nic(plane)
    distance = distances_to(fabric, last.leaf)
    start = Hop(source, plane, first.link)
    found: list[Path] = []
    # Depth first, in the order of the ports.
    unfinished: list[tuple[tuple[str, ...], tuple[Hop, ...]]] = []
    if first.leaf in distance:
        unfinished.append(((source, first.leaf), (start,)))
    while unfinished:
        nodes, hops = unfinished.pop()
        name = nodes[-1]
        if name == last.leaf:
            final = Hop(name, last.leaf_port, last.link)
            found.append(Path(plane, (*nodes, destination), (*hops, final)))
            continue
        for port in reversed(fabric.switch(name).fabric_ports):
            if distance.get(port.peer.node, len(distance)) == distance[name] - 1:
                unfinished.append(((*nodes, port.peer.node), (*hops, Hop(name, port.number, port.link))))
    return found


def distances_to(fabric: FabricSpec, target: str) -> dict[str, int]:
    """Hops from every switch that reaches `target` (breadth first)."""
    distance = {target: 0}
    frontier = [target]
    while frontier:
        following = []
        for name in frontier:
            for port in fabric.switch(name).fabric_ports:
                if port.peer.node not in distance:
                    distance[port.peer.node] = distance[name] + 1
                    following.append(port.peer.node)
        frontier = following
    return distance


def serialisation_ps(size_bytes: int, rate_bps: int) -> int:
    """Time that `size_bytes` take on a link, rounded up to a picosecond."""
    return -(-size_bytes * 8 * PS_PER_SECOND // rate_bps)


def one_way_ps(path: Path, frame_bytes: int) -> int:
    """Time from the first bit sent to the last bit received, store and forward, all queues empty."""
    if frame_bytes <= 0:
        raise TopologyError(f"frame_bytes={frame_bytes} is out of range (valid: above 0)")
    return sum(hop.link.delay_ps + serialisation_ps(frame_bytes, hop.link.rate_bps) for hop in path.hops)


def base_rtt_ps(path: Path, frame_bytes: int, acknowledgement_bytes: int = 64) -> int:
    """Round-trip time of a frame and its acknowledgement over the same links, all queues empty."""
    return one_way_ps(path, frame_bytes) + one_way_ps(path, acknowledgement_bytes)


def bandwidth_delay_product_bytes(path: Path, frame_bytes: int, acknowledgement_bytes: int = 64) -> int:
    """Bytes in flight that keep the path's slowest link busy: rate x base RTT, rounded up."""
    return -(-path.rate_bps * base_rtt_ps(path, frame_bytes, acknowledgement_bytes) // (8 * PS_PER_SECOND))


def longest_path(fabric: FabricSpec, frame_bytes: int = 1024) -> Path:
    """Return a path with the largest base RTT among those from the first host.

    Raises:
        TopologyError: the fabric has a single host.

    """
    return max(_representative_paths(fabric), key=lambda path: base_rtt_ps(path, frame_bytes))


def nearest_path(fabric: FabricSpec, frame_bytes: int = 1024) -> Path:
    """Return a path with the smallest base RTT among those from the first host.

    Raises:
        TopologyError: the fabric has a single host.

    """
    return min(_representative_paths(fabric), key=lambda path: base_rtt_ps(path, frame_bytes))


def _representative_paths(fabric: FabricSpec) -> list[Path]:
    first = fabric.hosts[0].name
    # Hosts behind the same leaves are equally far away; one of them stands for all.
    representatives = {tuple(nic.leaf for nic in host.nics): host.name for host in fabric.hosts[1:]}
    candidates = [
        path
        for host in representatives.values()
        for plane in range(fabric.planes)
        for path in paths(fabric, first, host, plane)[:1]
    ]
    if not candidates:
        raise TopologyError("a fabric of one host has no path (valid: at least 2 hosts)")
    return candidates
