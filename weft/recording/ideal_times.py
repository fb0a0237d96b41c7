"""How long a flow takes on an idle fabric: what its completion time is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_S
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec, LinkSpec, serialisation_ps, shortest_path
from weft.topologies.addressing import IpVersion
from weft.traffic.header_sizes import AETH, IMMEDIATE, PAD, RETH, overhead_bytes

Links = tuple[tuple[int, int], ...]
"""Rate (bit/s) and delay (ps) of every link of a path."""


@dataclass(frozen=True)
class MessageKind:
    """Header bytes that a message's first and last packet, or its only one, have in addition to every packet's."""

    first: int
    last: int
    only: int


WRITE = MessageKind(first=RETH, last=IMMEDIATE, only=RETH + IMMEDIATE)
READ_REQUEST = MessageKind(first=RETH, last=0, only=RETH)
READ_RESPONSE = MessageKind(first=AETH, last=AETH, only=AETH)


@dataclass(frozen=True)
class Framing:
    """Size of a message on a link, in bytes from Ethernet to iCRC; by default a WRITE with immediate.

    In addition to the last packet, every `ack_interval_packets`-th asks for an acknowledgement.
    """

    mtu_bytes: int
    telemetry: bool
    ip_version: IpVersion
    ack_interval_packets: int = 1
    kind: MessageKind = WRITE
    extension_bytes: int = 0
    """Headers of every data packet besides the BTH."""
    answer_bytes: int = AETH
    """Headers behind the BTH of an acknowledgement."""
    spans_planes: bool = False
    """Whether a message's packets go over all planes."""

    @classmethod
    def of_fabric(cls, options: FabricOptions, ack_interval_packets: int = 1, kind: MessageKind = WRITE) -> Framing:
        """Return the framing of a fabric with these options; a transport may have a RETH in every packet."""
        transport = options.transport.kind
        extension_bytes = transport.extension_bytes
        if kind is READ_RESPONSE and transport.read_data_bytes is not None:
            kind, extension_bytes = MessageKind(0, 0, 0), transport.read_data_bytes
        elif extension_bytes:
            kind = MessageKind(kind.first - RETH, transport.immediate_bytes, transport.immediate_bytes)
        return cls(
            options.mtu_bytes,
            options.int_telemetry,
            options.ip_version,
            ack_interval_packets,
            kind,
            extension_bytes,
            transport.answer_bytes,
            transport.spans_planes,
        )

    @property
    def overhead_bytes(self) -> int:
        """Return the bytes around every packet's payload."""
        return overhead_bytes(self.ip_version, self.telemetry) + self.extension_bytes

    @property
    def acknowledgement_bytes(self) -> int:
        """Return the size of an acknowledgement."""
        return overhead_bytes(self.ip_version, self.telemetry) + self.answer_bytes


class IdealTimes:
    """Times from a flow's start to its last acknowledgement with nothing else in the fabric, stored and forwarded.

    A flow is a WRITE with immediate. Where its packets take all planes, the plane with the most of them decides, and
    a full last packet is counted. The sender is not held back by its window; each switch takes its latency. Equal to
    the simulated time of a lone flow to the picosecond.
    """

    def __init__(self, fabric: FabricSpec, framing: Framing, switch_latency_ps: int = 0) -> None:
        self._fabric, self._framing = fabric, framing
        self._switch_latency_ps = switch_latency_ps

    @classmethod
    def of_fabric(cls, fabric: FabricSpec, options: FabricOptions) -> IdealTimes:
        """Return the ideal times of a fabric with these options."""
        framing = Framing.of_fabric(options, options.transport.settings().ack_interval_in_force)
        return cls(fabric, framing, options.switching.latency)

    def of(self, sources: Integers, destinations: Integers, planes: Integers, sizes_bytes: Integers) -> Integers:
        """Return every flow's ideal completion time; hosts by their ranks.

        Flows between like NICs of the same switches have a path in common, and all flows over like links are calculated
        at once: what is kept while this runs grows with the switches, not with the flows.
        """
        return self._of_each(self._over, sources, destinations, planes, sizes_bytes)

    def arrivals(self, sources: Integers, destinations: Integers, planes: Integers, sizes_bytes: Integers) -> Integers:
        """Return when every flow's last byte arrives, since its start."""
        return self._of_each(self._one_way, sources, destinations, planes, sizes_bytes)

    def occupancies(
        self, sources: Integers, destinations: Integers, planes: Integers, sizes_bytes: Integers
    ) -> Integers:
        """Return for how long every flow's frames keep the slowest link of its path busy."""
        return self._of_each(self._at_slowest, sources, destinations, planes, sizes_bytes)

    def _of_each(
        self,
        over: Callable[[Links, Integers], Integers],
        sources: Integers,
        destinations: Integers,
        planes: Integers,
        sizes_bytes: Integers,
    ) -> Integers:
        """Return what `over` says of every flow, given the links of its path and its size."""
        count = len(sources)
        if self._framing.spans_planes:
            planes, sizes_bytes = np.zeros_like(planes), self._of_a_plane(sizes_bytes)
        attached = self._attachments(np.concatenate([sources, destinations]), np.tile(planes, 2))
        pairs = attached[:count] * (attached.max(initial=0) + 1) + attached[count:]
        # One path for all flows between two places: a workload has millions of flows and few places.
        _, examples, of_pair = np.unique(pairs, return_index=True, return_inverse=True)
        numbers: dict[Links, int] = {}
        of_links = [
            numbers.setdefault(self.links(*ends), len(numbers))
            for ends in zip(*(column[examples].tolist() for column in (sources, destinations, planes)), strict=True)
        ]
        group = np.array(of_links, np.int64)[of_pair]
        times = np.zeros(count, np.int64)
        for links, number in numbers.items():
            rows = np.flatnonzero(group == number)
            times[rows] = over(links, sizes_bytes[rows])
        return times

    def _of_a_plane(self, sizes_bytes: Integers) -> Integers:
        """Return what one plane carries of messages whose packets take all planes in turn: the most that one does.

        Its packets are full, and none has the immediate, which another plane's last packet has.
        """
        packets = self._packets(sizes_bytes)
        share = -(-packets // self._fabric.nics_per_host)
        full = share * self._framing.mtu_bytes - IMMEDIATE
        return np.asarray(np.where(share == packets, sizes_bytes, full), dtype=np.int64)

    def _attachments(self, hosts: Integers, planes: Integers) -> Integers:
        """Return a number for each NIC: the same for those at one switch over like links."""
        nics_per_host = self._fabric.nics_per_host
        found, of_nic = np.unique(hosts * nics_per_host + planes, return_inverse=True)
        numbers: dict[tuple[str, LinkSpec], int] = {}
        nics = [self._fabric.hosts[nic // nics_per_host].nic(nic % nics_per_host) for nic in found.tolist()]
        of_found = [numbers.setdefault((nic.switch, nic.link), len(numbers)) for nic in nics]
        return np.array(of_found, np.int64)[of_nic]

    def links(self, source: int, destination: int, plane: int) -> Links:
        """Return the links of the first of the shortest paths, which stands for all between its switches."""
        hosts = self._fabric.hosts
        path = shortest_path(self._fabric, hosts[source].name, hosts[destination].name, plane)
        return tuple((hop.link.rate_bps, hop.link.delay_ps) for hop in path.hops)

    def _over(self, links: Links, sizes_bytes: Integers) -> Integers:
        back = [serialisation_ps(self._framing.acknowledgement_bytes, rate) for rate, _ in links]
        # The last acknowledgement may come up, at the slowest link of the way back, with that of the packet before.
        asked_before = (self._packets(sizes_bytes) - 1) % self._framing.ack_interval_packets == 0
        data = self._data_ps(links, sizes_bytes, np.where(asked_before, max(back), 0))
        return np.asarray(data + 2 * self._delays_ps(links) + sum(back), dtype=np.int64)

    def _one_way(self, links: Links, sizes_bytes: Integers) -> Integers:
        return self._data_ps(links, sizes_bytes, np.zeros_like(sizes_bytes)) + self._delays_ps(links)

    def _at_slowest(self, links: Links, sizes_bytes: Integers) -> Integers:
        packets = self._packets(sizes_bytes)
        first, full, last = self._frames([min(rate_bps for rate_bps, _ in links)], sizes_bytes)
        return np.where(packets == 1, first[0], first[0] + (packets - 2) * full[0] + last[0])

    def _delays_ps(self, links: Links) -> int:
        return sum(delay_ps for _, delay_ps in links) + (len(links) - 1) * self._switch_latency_ps

    def _packets(self, sizes_bytes: Integers) -> Integers:
        return np.maximum(1, -(-sizes_bytes // self._framing.mtu_bytes))

    def _frames(
        self, rates_bps: Sequence[int], sizes_bytes: Integers
    ) -> tuple[list[Integers], list[int], list[Integers]]:
        """Return how long links of some rates take for flows' first frames, full ones between, and last ones."""
        framing, packets = self._framing, self._packets(sizes_bytes)
        last_payload = _padded(sizes_bytes - (packets - 1) * framing.mtu_bytes)
        first_payload = np.where(packets > 1, framing.mtu_bytes, last_payload)
        first_header = np.where(packets > 1, framing.kind.first, framing.kind.only)
        first = [_sent_ps(framing.overhead_bytes + first_header + first_payload, rate) for rate in rates_bps]
        full = [serialisation_ps(framing.overhead_bytes + framing.mtu_bytes, rate) for rate in rates_bps]
        last = [_sent_ps(framing.overhead_bytes + framing.kind.last + last_payload, rate) for rate in rates_bps]
        return first, full, last

    def _data_ps(self, links: Links, sizes_bytes: Integers, behind_ps: Integers) -> Integers:
        """Return when flows' last frames have passed all links, without delays.

        Each frame counts as at least so far behind the one before that their acknowledgements do not meet.
        """
        packets = self._packets(sizes_bytes)
        first, full, last = self._frames([rate_bps for rate_bps, _ in links], sizes_bytes)
        one = np.asarray(np.sum(first, axis=0), dtype=np.int64)
        two = np.maximum(_two(first, last), one + behind_ps)
        before_last = np.where(packets > 3, _many(first, full, full, packets - 3), _two(first, full))
        many = np.maximum(_many(first, full, last, packets - 2), before_last + behind_ps)
        return np.where(packets == 1, one, np.where(packets == 2, two, many))


def _padded(payload_bytes: Integers) -> Integers:
    """Payloads are padded to whole words of four bytes (InfiniBand specification, section 9.2.4)."""
    return np.asarray(-(-payload_bytes // PAD) * PAD, dtype=np.int64)


def _sent_ps(frame_bytes: Integers, rate_bps: int) -> Integers:
    return np.asarray(-(-frame_bytes * 8 * PS_PER_S // rate_bps), dtype=np.int64)


def _two(first: Sequence[Integers], last: Sequence[Any]) -> Integers:
    """The second frame follows the first from the link where it catches up with it."""
    links = range(len(first))
    chains = [np.sum(first[: at + 1], axis=0) + np.sum(last[at:], axis=0) for at in links]
    return np.asarray(np.max(chains, axis=0), dtype=np.int64)


def _many(first: Sequence[Integers], full: Sequence[int], last: Sequence[Any], full_count: Integers) -> Integers:
    """The longest chain of frames each of which waits for another: the one before it, or itself a link earlier.

    The first frame goes as far as link a, the full ones pass links a to b, where they wait for each other at the
    slowest, and the last one goes on from b.
    """
    chains = [
        np.sum(first[: a + 1], axis=0)
        + sum(full[a : b + 1])
        + (full_count - 1) * max(full[a : b + 1])
        + np.sum(last[b:], axis=0)
        for a, b in combinations_with_replacement(range(len(first)), 2)
    ]
    return np.asarray(np.max(chains, axis=0), dtype=np.int64)
