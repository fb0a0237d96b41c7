"""Shortest paths between hosts, and a path's base round-trip time and bandwidth-delay product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from weft.quantities.units import PS_PER_S
from weft.topologies.errors import TopologyError
from weft.topologies.fabric import FabricSpec, LinkSpec, PortSpec


@dataclass(frozen=True)
class Hop:
    """One transmission of a path: `node` sends out of `port` (a host's NIC number) over `link`."""

    node: str
    port: int
    link: LinkSpec


@dataclass(frozen=True)
class Path:
    """A path between two NICs with the same number; `nodes` includes both hosts, `hops` has one item fewer."""

    plane: int
    nodes: tuple[str, ...]
    hops: tuple[Hop, ...]

    @property
    def rate_bps(self) -> int:
        """Rate of the slowest link."""
        return min(hop.link.rate_bps for hop in self.hops)


def paths(fabric: FabricSpec, source: str, destination: str, nic: int | None = None) -> tuple[Path, ...]:
    """Return all shortest paths from host to host, over NIC `nic` or over all NICs, in order of port numbers.

    There may be thousands. For a single path, or to search for one, use `shortest_path` or `shortest_paths`.

    Raises:
        TopologyError: a host or NIC is unknown, or source and destination are the same host.

    """
    nics = range(fabric.nics_per_host) if nic is None else (nic,)
    return tuple(path for each in nics for path in shortest_paths(fabric, source, destination, each))


def shortest_path(fabric: FabricSpec, source: str, destination: str, nic: int) -> Path:
    """Return the shortest path with the lowest port numbers between two hosts' NICs `nic`.

    Raises:
        TopologyError: as `paths`, or there is no path.

    """
    path = next(shortest_paths(fabric, source, destination, nic), None)
    if path is None:
        raise TopologyError(f"no path leads from {source} to {destination} over their NICs {nic}")
    return path


def shortest_paths(fabric: FabricSpec, source: str, destination: str, nic: int) -> Iterator[Path]:
    """Yield the shortest paths between two hosts' NICs `nic`, in order of port numbers.

    Raises:
        TopologyError: as `paths`.

    """
    if source == destination:
        raise TopologyError(f"a path needs two different hosts (got {source!r} twice)")
    first = fabric.host(source).nic(nic)
    last = fabric.host(destination).nic(nic)
    if fabric.hops_between(first.switch, last.switch) is None:
        return
    # Depth first: finding the first path takes only its own steps.
    unfinished: list[tuple[tuple[str, ...], tuple[Hop, ...]]] = [
        ((source, first.switch), (Hop(source, nic, first.link),))
    ]
    while unfinished:
        nodes, hops = unfinished.pop()
        name = nodes[-1]
        if name == last.switch:
            final = Hop(name, last.switch_port, last.link)
            yield Path(first.plane, (*nodes, destination), (*hops, final))
            continue
        unfinished += [
            ((*nodes, port.peer.node), (*hops, Hop(name, port.number, port.link)))
            for port in reversed(tuple(ports_towards(fabric, name, last.switch)))
        ]


def ports_towards(fabric: FabricSpec, switch: str, target: str) -> Iterator[PortSpec]:
    """Yield the ports of a switch on shortest paths to another switch, in order; none if it is unreachable."""
    hops = fabric.hops_between(switch, target)
    if hops:
        for port in fabric.switch(switch).fabric_ports:
            if fabric.hops_between(port.peer.node, target) == hops - 1:
                yield port


def serialisation_ps(size_bytes: int, rate_bps: int) -> int:
    """Return the time to serialise `size_bytes` at `rate_bps`, rounded up to a picosecond."""
    return -(-size_bytes * 8 * PS_PER_S // rate_bps)


def one_way_ps(path: Path, frame_bytes: int) -> int:
    """Return the time from the first bit sent to the last bit received: store and forward, all queues empty."""
    if frame_bytes <= 0:
        raise TopologyError(f"frame_bytes={frame_bytes} is out of range", valid="above 0")
    return sum(hop.link.delay_ps + serialisation_ps(frame_bytes, hop.link.rate_bps) for hop in path.hops)


def base_rtt_ps(path: Path, frame_bytes: int, acknowledgement_bytes: int = 64) -> int:
    """Return the round-trip time of a frame and its acknowledgement over the same links, all queues empty."""
    return one_way_ps(path, frame_bytes) + one_way_ps(path, acknowledgement_bytes)


def bandwidth_delay_product_bytes(path: Path, frame_bytes: int, acknowledgement_bytes: int = 64) -> int:
    """Return the bytes in flight that keep the path's slowest link busy: rate x base RTT, rounded up."""
    return -(-path.rate_bps * base_rtt_ps(path, frame_bytes, acknowledgement_bytes) // (8 * PS_PER_S))


def longest_path(fabric: FabricSpec, frame_bytes: int = 1024) -> Path:
    """Return a path from the first host with the largest base RTT.

    Raises:
        TopologyError: the fabric has a single host.

    """
    return max(fabric.representative_paths, key=lambda path: base_rtt_ps(path, frame_bytes))


def nearest_path(fabric: FabricSpec, frame_bytes: int = 1024) -> Path:
    """Return a path from the first host with the smallest base RTT.

    Raises:
        TopologyError: the fabric has a single host.

    """
    return min(fabric.representative_paths, key=lambda path: base_rtt_ps(path, frame_bytes))


def representative_paths(fabric: FabricSpec) -> list[Path]:
    """Return a path from the first host to one host below each other set of switches, over each of its NICs.

    Those of a storage network are left out.

    Raises:
        TopologyError: the fabric has a single host.

    """
    first = fabric.hosts[0].name
    # Hosts of the same leaves are equally far away; one of them represents all.
    nics = range(fabric.training_nics)
    representatives = {tuple(host.nics[nic].switch for nic in nics): host.name for host in fabric.hosts[1:]}
    candidates = [
        path
        for host in representatives.values()
        for nic in nics
        for path in islice(shortest_paths(fabric, first, host, nic), 1)
    ]
    if not candidates:
        raise TopologyError("a fabric of one host has no path", valid="at least 2 hosts")
    return candidates
