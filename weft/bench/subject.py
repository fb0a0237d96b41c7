"""The fabric under test: a scenario without traffic, and the facts that tests place their traffic by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.errors import BadInputError
from weft.run.spec import RunSpec, run_spec
from weft.scenario import Change, anchor_paths, apply_changes, parse_scenario, read_mapping
from weft.scenario.dotted import plain
from weft.scenario.fabric_presets import expanded
from weft.topologies import FabricSpec
from weft.traffic.transports.registry import TRANSPORT_KINDS

_TESTS_OWN = ("clock", "traffic", "events", "observe", "workers")
"""Keys of a scenario that the tests set: those in the fabric's file say nothing about the fabric."""


@dataclass(frozen=True)
class UplinkGroup:
    """Ports of a switch that lead up a tier, or, without tiers, to other switches: parallel links in the drafts' sense.

    `ports` are names of ports as in the table `ports` of a run.
    """

    switch: str
    ports: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """A fabric under test.

    Attributes:
        name: the scenario's.
        tree: the scenario with absolute paths, and without the keys that tests set.
        spec: the same, checked, under the virtual clock.
    """

    name: str
    tree: dict[str, Any]
    spec: RunSpec

    @property
    def fabric(self) -> FabricSpec:
        """Hosts, switches and links."""
        return self.spec.fabric

    @property
    def ranks(self) -> int:
        """Endpoints: accelerators, each with NICs of its own. Spares do not count."""
        return self.fabric.rank_count

    @property
    def ranks_per_host(self) -> int:
        """Accelerators of a host."""
        return 1 if self.fabric.scale_up is None else self.fabric.scale_up.ranks_per_host

    @property
    def nics(self) -> int:
        """NICs of each endpoint."""
        return self.fabric.training_nics

    @cached_property
    def nic_rate_bps(self) -> int:
        """Rate of one NIC."""
        return min(self._host_link_rates)

    @property
    def rank_rate_bps(self) -> int:
        """Rate of all NICs of an endpoint together."""
        return self.nic_rate_bps * self.nics

    @cached_property
    def _host_link_rates(self) -> list[int]:
        nics = self.fabric.training_nics
        return [nic.link.rate_bps for host in self.fabric.hosts for nic in host.nics[:nics]]

    @property
    def spans_planes(self) -> bool:
        """Whether a queue pair uses all NICs of an endpoint, so that flows name no plane."""
        return TRANSPORT_KINDS[self.spec.options.transport.protocol].spans_planes

    @cached_property
    def edges(self) -> tuple[str, ...]:
        """The switch at which each rank's first NIC is."""
        return tuple(host.nics[0].switch for host in self.fabric.hosts[: self.ranks])

    @cached_property
    def servers(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each host, in order. In a rail-optimised fabric each is at another leaf, their numbers apart."""
        found: dict[int, list[int]] = {}
        for rank, server in enumerate(self.fabric.host_numbers()[: self.ranks]):
            found.setdefault(server, []).append(rank)
        return tuple(tuple(found[server]) for server in sorted(found))

    @cached_property
    def server_of(self) -> tuple[int, ...]:
        """The place in `servers` of each rank's host."""
        places = {rank: place for place, ranks in enumerate(self.servers) for rank in ranks}
        return tuple(places[rank] for rank in range(self.ranks))

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Source and destination of one flow from each rank: to the rank half the fabric away, host by host.

        The destination has the same place in its host, so that pairs of a rail keep to it.
        """
        step = max(1, len(self.servers) // 2)
        to = {
            rank: self.servers[(server + step) % len(self.servers)][place]
            for server, ranks in enumerate(self.servers)
            for place, rank in enumerate(ranks)
        }
        return tuple((rank, to[rank]) for rank in range(self.ranks) if to[rank] != rank)

    def remote_pair(self) -> tuple[int, int]:
        """Return the first pair of ranks at different switches, or the first pair if all share one."""
        for source, destination in self.pairs:
            if self.edges[source] != self.edges[destination]:
                return source, destination
        if not self.pairs:
            raise BadInputError(f"{self.name}: {self.ranks} endpoints", place="fabric", valid="2 or more")
        return self.pairs[0]

    def senders_to(self, receiver: int, count: int) -> list[int] | None:
        """Return so many ranks to send to one, ranks at other switches first; None if there are not enough.

        Only ranks that reach the receiver over the fabric count, and none of its own host.
        """
        host = self.server_of[receiver]
        others = [rank for rank in range(self.ranks) if self.server_of[rank] != host and self._reaches(rank, receiver)]
        others.sort(key=lambda rank: self.edges[rank] == self.edges[receiver])
        return others[:count] if len(others) >= count else None

    def _reaches(self, source: int, destination: int) -> bool:
        return self.fabric.hops_between(self.edges[source], self.edges[destination]) is not None

    @cached_property
    def uplinks(self) -> tuple[UplinkGroup, ...]:
        """The groups of parallel links: of each switch with hosts, the ports that lead away from them."""
        tiers = {switch.name: switch.tier for switch in self.fabric.switches}
        ports: dict[str, dict[bool, list[str]]] = {}
        for link in self.fabric.training_links:
            for sender, receiver in link.directions:
                up = tiers[receiver.node] > tiers[sender.node]
                ports.setdefault(sender.node, {}).setdefault(up, []).append(str(sender))
        groups = []
        for switch in dict.fromkeys(nic.switch for host in self.fabric.hosts for nic in host.nics):
            found = ports.get(switch, {})
            chosen = found.get(True) or found.get(False)
            if chosen:
                groups.append(UplinkGroup(switch, tuple(chosen)))
        return tuple(groups)

    @property
    def has_parallel_paths(self) -> bool:
        """Whether some switch has a choice of links."""
        return any(len(group.ports) > 1 for group in self.uplinks)

    @property
    def is_lossless(self) -> bool:
        """Whether RoCEv2's data is kept from being lost, by PFC or by credits."""
        return bool(self.spec.options.pfc.classes or self.spec.options.credits.classes)


def read_subject(path: Path, changes: Sequence[Change] = ()) -> Subject:
    """Read a scenario as a fabric under test; its traffic, events and records are left out.

    Raises:
        BadInputError: it is not a scenario, or a key is not valid.
    """
    tree = read_mapping(path, "a scenario")
    anchor_paths(tree, path.parent)
    options = apply_changes(tree, changes)
    kept = {key: value for key, value in plain(tree).items() if key not in _TESTS_OWN}
    parse_scenario({**kept, "clock": "virtual"}, str(path), units_required=True, options=options)
    # Variants of the fabric take keys away, also of a preset: it is written out.
    return subject_of(expanded(kept), str(path))


def subject_of(tree: dict[str, Any], place: str) -> Subject:
    """Return the subject of a scenario's tree without traffic; `place` is for errors. Raises as `read_subject`."""
    spec = run_spec(parse_scenario({**tree, "clock": "virtual"}, place, units_required=True))
    return Subject(spec.name or "fabric", tree, spec)
