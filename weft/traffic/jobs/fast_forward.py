"""Which operations of jobs fast-forward may repeat, which take equally long, and which share ports."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engine import _core
from weft.traffic.jobs.rank_job import RankCall, RankJob

if TYPE_CHECKING:
    # Hosts' processes, which have no part in this, do not import topologies.
    from weft.topologies import FabricSpec


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

    Operations with the same ports disturb each other: those of a rank's NIC, each direction for itself, those of its
    links to ranks of its host, and the links between switches. Where switches have two tiers, operations between
    leaves share the links of each leaf, up and down; elsewhere all that leave a switch share one port. So an operation
    that has run alone has shared no queue.
    """

    def __init__(self, native: _core.FastForward, fabric: FabricSpec) -> None:
        self._native = native
        self._hosts = fabric.host_numbers()
        self._switches = [tuple(nic.switch for nic in host.nics) for host in fabric.hosts]
        self._rates = [tuple(nic.link.rate_bps for nic in host.nics) for host in fabric.hosts]
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
        self._ports, self._alike, self._variants = _Numbers(), _Numbers(), _Numbers()
        self._groups: dict[Hashable, int] = {}
        self._is_off = bool(reason)
        if reason:
            self.reasons[reason] = None

    @property
    def counts(self) -> _core.FastForwardCounts:
        """What the engine has counted so far."""
        return self._native.counts

    def of_ranks(self, ranks: Sequence[int], parts: Sequence[RankJob]) -> list[RepeatedParts | None]:
        """Return each rank's groups; None where nothing is repeated."""
        if self._is_off:
            return [None] * len(parts)
        return [self._of_rank(rank, part) for rank, part in zip(ranks, parts, strict=True)]

    def _of_rank(self, rank: int, part: RankJob) -> RepeatedParts:
        calls = [(self._group_of(call), call.group_rank, self._variant_of(call)) for call in part.calls]
        peers = []
        for paths in part.peers:
            channel = paths.channels[0]
            key = (channel.label, channel.traffic_class)
            peers.append((self._message_group(rank, channel.peer, key), self._message_group(channel.peer, rank, key)))
        return RepeatedParts(self._native, calls, peers)

    def _variant_of(self, call: RankCall) -> int:
        return self._variants.of((call.collective, call.algorithm, call.spec, call.traffic_class))

    def _group_of(self, call: RankCall) -> int:
        """Return the group of a call. Data are values that packets carry, so such a call is never repeated."""
        may_repeat = call.data is None and call.aggregation_job is None
        return self._group(
            ("group", call.label, call.ranks, may_repeat),
            call.ranks,
            [self._ports_of(rank, call.ranks, sends=True, receives=True) for rank in call.ranks],
            is_message=False,
            may_repeat=may_repeat,
        )

    def _message_group(self, sender: int, receiver: int, of: tuple[str, int]) -> int:
        pair = (sender, receiver)
        ports = [
            self._ports_of(sender, pair, sends=True, receives=False),
            self._ports_of(receiver, pair, sends=False, receives=True),
        ]
        return self._group(("message", *of, *pair), pair, ports, is_message=True, may_repeat=True, of_class=of[1])

    def _group(
        self,
        key: Hashable,
        ranks: tuple[int, ...],
        ports: list[list[int]],
        *,
        is_message: bool,
        may_repeat: bool,
        of_class: int = 0,
    ) -> int:
        if (known := self._groups.get(key)) is None:
            known = self._groups[key] = self._native.add_group(
                list(ranks),
                ports=ports,
                alike=self._alike.of((is_message, of_class, self._place_of(key, ranks))),
                latency_ps=self._latency_ps(ranks),
                is_message=is_message,
                may_repeat=may_repeat,
            )
        return known

    def _latency_ps(self, ranks: tuple[int, ...]) -> int:
        """Return what passes between the end of sending and the last acknowledgement, on an idle fabric."""
        if len({self._hosts[rank] for rank in ranks}) == 1:
            return self._within_host_ps
        near_ps = 4 * max(self._delays_ps[rank] for rank in ranks)
        return near_ps if len({self._switches[rank] for rank in ranks}) == 1 else near_ps + self._between_switches_ps

    def _place_of(self, key: Hashable, ranks: Iterable[int]) -> Hashable:
        """Return what groups have in common in which operations take as long: a host, a kind of leaf, or nothing."""
        if len({self._hosts[rank] for rank in ranks}) == 1:
            return "host"
        if len({self._switches[rank] for rank in ranks}) == 1:
            return tuple(self._rates[rank] for rank in ranks)
        return key

    def _ports_of(self, rank: int, others: Sequence[int], *, sends: bool, receives: bool) -> list[int]:
        """Return the numbers of ports that a rank's operation with others uses."""
        ports: list[Hashable] = []
        elsewhere = [other for other in others if self._hosts[other] != self._hosts[rank]]
        if any(other != rank and self._hosts[other] == self._hosts[rank] for other in others):
            ports.append(("scale-up", rank))
        directions = [name for name, used in (("out", sends), ("in", receives)) if used]
        if elsewhere:
            ports += [(direction, rank) for direction in directions]
        leaf = self._switches[rank]
        if any(self._switches[other] != leaf for other in elsewhere):
            between = [(direction, *leaf) for direction in directions]
            ports += between if self._has_two_tiers else ["between switches"]
        return [self._ports.of(port) for port in ports]


def has_two_tiers(fabric: FabricSpec) -> bool:
    """Return whether each link between switches joins one with hosts and one without."""
    leaves = {nic.switch for host in fabric.hosts for nic in host.nics}
    return all((link.a.node in leaves) != (link.b.node in leaves) for link in fabric.links_between_switches)
