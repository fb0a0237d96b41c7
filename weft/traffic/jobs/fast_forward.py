"""Which operations of jobs fast-forward may repeat, which take equally long, and which share ports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engine import _core
from weft.traffic.collectives import collective_named
from weft.traffic.costs import Links, Wire
from weft.traffic.jobs.rank_job import RankCall, RankJob
from weft.traffic.schedule_nodes import Channel

if TYPE_CHECKING:
    # Hosts' processes, which have no part in this, do not import topologies.
    from weft.topologies import FabricSpec

SwitchPort = tuple[str, int]
"""A switch's name and a port's number."""
FlowPath = tuple[SwitchPort, ...]
"""The egress ports to other switches on a path, in order."""
Connection = tuple[int, Channel]
"""A rank, and its channel to another one."""
FindPaths = Callable[[Sequence[Connection]], Sequence[FlowPath | None]]
"""Returns the paths of connections; None for one that leads nowhere."""


@dataclass(frozen=True)
class RepeatedParts:
    """A rank's groups in fast-forward: (group, place in it, variant) of each call, (to, from) of each peer."""

    fast_forward: _core.FastForward
    calls: list[tuple[int, int, int]]
    peers: list[tuple[int, int]]


class _Numbers:
    """Numbers things from 0, in the order in which it meets them."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, thing: Hashable) -> int:
        return self._known.setdefault(thing, len(self._known))


class FastForwardGroups:
    """The groups of ranks that a fabric's jobs have operations in, as the engine's `FastForward` knows them.

    Operations disturb each other at ports that cannot carry all of them: those of a rank's NIC, each direction for
    itself, those of its links to ranks of its host, and the links between switches. `find_paths` names the links that
    each connection takes. Without it, operations between leaves share the links of each leaf, up and down, where
    switches have two tiers; elsewhere all that leave a switch share one port.
    """

    def __init__(self, native: _core.FastForward, fabric: FabricSpec, find_paths: FindPaths | None) -> None:
        self._native = native
        self._find_paths = find_paths
        self._hosts = fabric.host_numbers()
        self._nics = [host.nics for host in fabric.hosts]
        self._switches = [tuple(nic.switch for nic in host.nics) for host in fabric.hosts]
        self._rates = [tuple(nic.link.rate_bps for nic in host.nics) for host in fabric.hosts]
        self._links = {
            (end.node, end.port): each.link for each in fabric.links_between_switches for end in (each.a, each.b)
        }
        self._has_two_tiers = has_two_tiers(fabric)
        self._delays_ps = [max(nic.link.delay_ps for nic in host.nics) for host in fabric.hosts]
        self._between_switches_ps = 4 * max((each.link.delay_ps for each in fabric.links_between_switches), default=0)
        self._within_host_ps = fabric.scale_up.latency_ps if fabric.scale_up is not None else 0
        self._is_off = False
        self.reasons: dict[str, None] = {}
        """Reasons why runs had nothing repeated, each once."""
        self.begin()

    def begin(self, reason: str = "") -> None:
        """Forget the run before. With a reason, nothing is repeated in the next one."""
        self._native.forget()
        self._alike, self._variants = _Numbers(), _Numbers()
        self._ports: dict[Hashable, int] = {}
        self._groups: dict[Hashable, int] = {}
        self._timed: set[tuple[int, int]] = set()
        self._paths: dict[Connection, FlowPath | None] = {}
        self._is_off = bool(reason)
        if reason:
            self.reasons[reason] = None

    @property
    def counts(self) -> _core.FastForwardCounts:
        """What the engine has counted so far."""
        return self._native.counts

    def of_ranks(
        self,
        ranks: Sequence[int],
        parts: Sequence[RankJob],
        channels_of: Callable[[RankCall], Iterable[Channel]],
    ) -> list[RepeatedParts | None]:
        """Return each rank's groups; None where nothing is repeated. All ranks are connected.

        `channels_of` returns the fabric's channels to which a rank writes in a call.
        """
        if self._is_off:
            return [None] * len(parts)
        connections: dict[Hashable, dict[Connection, None]] = defaultdict(dict)
        for rank, part in zip(ranks, parts, strict=True):
            for call in part.calls:
                connections[_key_of(call)].update(((rank, channel), None) for channel in channels_of(call))
        self._find([*(each for of_group in connections.values() for each in of_group), *_between_peers(ranks, parts)])
        return [self._of_rank(rank, part, connections) for rank, part in zip(ranks, parts, strict=True)]

    def _find(self, connections: Iterable[Connection]) -> None:
        """Find the paths of connections between leaves."""
        if self._find_paths is None:
            return
        far = [each for each in dict.fromkeys(connections) if each not in self._paths and self._is_far(each)]
        self._paths.update(zip(far, self._find_paths(far), strict=True))

    def _is_far(self, connection: Connection) -> bool:
        rank, channel = connection
        if channel.is_scale_up:
            return False
        return self._nics[rank][channel.plane].switch != self._nics[channel.peer][channel.plane].switch

    def _of_rank(
        self, rank: int, part: RankJob, connections: Mapping[Hashable, Collection[Connection]]
    ) -> RepeatedParts:
        calls = []
        for call in part.calls:
            group, variant = self._group_of(call, connections[_key_of(call)]), self._variant_of(call)
            calls.append((group, call.group_rank, variant))
            if (group, variant) not in self._timed:
                self._timed.add((group, variant))
                self._native.set_latency(group, variant, self._call_latency_ps(call))
        peers = []
        for paths in part.peers:
            to = [(rank, channel) for channel in paths.channels]
            peers.append((self._message_group(to), self._message_group(_turned(to))))
        return RepeatedParts(self._native, calls, peers)

    def _variant_of(self, call: RankCall) -> int:
        return self._variants.of((call.collective, call.algorithm, call.spec, call.traffic_class))

    def _group_of(self, call: RankCall, connections: Collection[Connection]) -> int:
        """Return the group of a call. Data are values that packets carry, so such a call is never repeated."""
        return self._group(
            _key_of(call),
            call.ranks,
            connections,
            [(True, True)] * len(call.ranks),
            is_message=False,
            may_repeat=call.data is None and call.aggregation_job is None,
            reduces=call.aggregation_job is not None,
        )

    def _message_group(self, connections: list[Connection]) -> int:
        sender, channel = connections[0]
        return self._group(
            ("message", channel.label, channel.traffic_class, sender, channel.peer),
            (sender, channel.peer),
            connections,
            [(True, False), (False, True)],
            is_message=True,
            may_repeat=True,
            of_class=channel.traffic_class,
        )

    def _group(
        self,
        key: Hashable,
        ranks: tuple[int, ...],
        connections: Collection[Connection],
        directions: list[tuple[bool, bool]],
        *,
        is_message: bool,
        may_repeat: bool,
        reduces: bool = False,
        of_class: int = 0,
    ) -> int:
        if (known := self._groups.get(key)) is not None:
            return known
        places = {rank: place for place, rank in enumerate(ranks)}
        links: list[dict[SwitchPort, int]] = [{} for _ in ranks]
        for rank, channel in connections:
            for port in self._paths.get((rank, channel)) or ():
                # All that a rank sends comes from its NIC.
                links[places[rank]][port] = self._nics[rank][channel.plane].link.rate_bps
        if reduces and self._are_far(ranks):
            # Where the switches that reduce send to is not asked.
            links = [{port: link.rate_bps for port, link in self._links.items()}] * len(ranks)
        ports = [
            self._ports_of(rank, ranks, *way, of_links)
            for rank, way, of_links in zip(ranks, directions, links, strict=True)
        ]
        place = self._place_of(key, ranks, connections, links)
        self._groups[key] = self._native.add_group(
            list(ranks),
            ports=ports,
            alike=self._alike.of((is_message, of_class, place)),
            latency_ps=self._latency_ps(ranks),
            is_message=is_message,
            may_repeat=may_repeat and not any(self._paths.get(each, ()) is None for each in connections),
        )
        return self._groups[key]

    def _call_latency_ps(self, call: RankCall) -> int:
        """Return how long a call takes without its bytes, to the last acknowledgement, by its algorithm's own model."""
        one_way_ps = self._latency_ps(call.ranks) / 2
        links = Links(Wire(one_way_ps, 0.0), Wire(self._within_host_ps, 0.0), Wire(one_way_ps, 0.0))
        cost = collective_named(call.collective).algorithm(call.algorithm).on(call.spec).cost(call.spec, links)
        return round(cost.latency_ps + one_way_ps)

    def _latency_ps(self, ranks: tuple[int, ...]) -> int:
        """Return what passes between the end of sending and the last acknowledgement, on an idle fabric."""
        if len({self._hosts[rank] for rank in ranks}) == 1:
            return self._within_host_ps
        near_ps = 4 * max(self._delays_ps[rank] for rank in ranks)
        return near_ps + self._between_switches_ps if self._are_far(ranks) else near_ps

    def _are_far(self, ranks: Iterable[int]) -> bool:
        """Return whether ranks are on several leaves."""
        return len({self._switches[rank] for rank in ranks}) > 1

    def _place_of(
        self,
        key: Hashable,
        ranks: tuple[int, ...],
        connections: Iterable[Connection],
        links: Sequence[Mapping[SwitchPort, int]],
    ) -> Hashable:
        """Return what groups in which operations take as long have in common.

        It is a host, a kind of leaf, or the kinds of links on the way from rank to rank. A group in which ranks compete
        for a link has nothing in common with others.
        """
        if len({self._hosts[rank] for rank in ranks}) == 1:
            return "host"
        rates = tuple(self._rates[rank] for rank in ranks)
        if not self._are_far(ranks):
            return rates
        loads: Counter[SwitchPort] = Counter()
        for of_rank in links:
            loads.update(of_rank)
        if self._find_paths is None or any(load > self._links[port].rate_bps for port, load in loads.items()):
            return key
        places = {rank: place for place, rank in enumerate(ranks)}
        ways = frozenset(
            (
                places[rank],
                places[channel.peer],
                channel.plane,
                channel.is_scale_up,
                tuple(
                    (self._links[port].rate_bps, self._links[port].delay_ps)
                    for port in self._paths.get((rank, channel)) or ()
                ),
            )
            for rank, channel in connections
        )
        return rates, ways

    def _ports_of(
        self, rank: int, others: Sequence[int], sends: bool, receives: bool, links: Mapping[SwitchPort, int]
    ) -> list[tuple[int, int]]:
        """Return the ports that a rank's operation with others uses, and at which rates in bit/s."""
        whole: list[Hashable] = []
        elsewhere = [other for other in others if self._hosts[other] != self._hosts[rank]]
        if any(other != rank and self._hosts[other] == self._hosts[rank] for other in others):
            whole.append(("scale-up", rank))
        directions = [name for name, used in (("out", sends), ("in", receives)) if used]
        if elsewhere:
            whole += [(direction, rank) for direction in directions]
        leaf = self._switches[rank]
        if self._find_paths is None and any(self._switches[other] != leaf for other in elsewhere):
            between = [(direction, *leaf) for direction in directions]
            whole += between if self._has_two_tiers else ["between switches"]
        # Of these one operation takes all.
        ports = [(self._port(port, 1), 1) for port in whole]
        return ports + [
            (self._port(("link", *port), self._links[port].rate_bps), rate_bps) for port, rate_bps in links.items()
        ]

    def _port(self, port: Hashable, rate_bps: int) -> int:
        if (known := self._ports.get(port)) is None:
            known = self._ports[port] = self._native.add_port(rate_bps)
        return known


def _key_of(call: RankCall) -> Hashable:
    """Return which group a call is of; calls with data or reductions are in other ones, which are never repeated."""
    return ("group", call.label, call.ranks, call.data is None, call.aggregation_job)


def _turned(connections: Iterable[Connection]) -> list[Connection]:
    """Return the same connections in the other direction."""
    return [(channel.peer, channel.towards(rank)) for rank, channel in connections]


def _between_peers(ranks: Iterable[int], parts: Iterable[RankJob]) -> Iterator[Connection]:
    """Yield the connections between peers, in both directions."""
    for rank, part in zip(ranks, parts, strict=True):
        for paths in part.peers:
            to = [(rank, channel) for channel in paths.channels]
            yield from to
            yield from _turned(to)


def has_two_tiers(fabric: FabricSpec) -> bool:
    """Return whether each link between switches joins one with hosts and one without."""
    leaves = {nic.switch for host in fabric.hosts for nic in host.nics}
    return all((link.a.node in leaves) != (link.b.node in leaves) for link in fabric.links_between_switches)
