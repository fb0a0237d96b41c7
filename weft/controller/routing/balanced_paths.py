"""Chooses shortest paths one by one, each over the links with the least load so far.

A destination's paths form a tree: among the shortest paths in hops, those over the least loaded links (T. Hoefler, T.
Schneider and A. Lumsdaine, Optimized Routing for Large-Scale InfiniBand Networks, HOTI 2009). The paper builds a tree
for each host and adds its load when the tree is complete. Here all hosts of a switch share a tree, so each path adds
its load at once, and paths from several switches to one spread over several links.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from weft.topologies import SwitchSpec

NO_LINK = -1
Tree = list[int]
"""Each switch's link towards the destination, by place; NO_LINK at the destination or if it is unreachable."""


@dataclass(frozen=True)
class Links:
    """The links of a plane, one for each direction, numbered by switch and port.

    Attributes:
        of: numbers of each switch's outgoing links, by the switch's place.
        port: outgoing port of each link.
        start: place of the switch that each link leaves.
        end: place of the switch that each link leads to.
        cost: load that a packet adds to each link; larger for slower links.

    """

    of: tuple[tuple[int, ...], ...]
    port: tuple[int, ...]
    start: tuple[int, ...]
    end: tuple[int, ...]
    cost: tuple[int, ...]

    @classmethod
    def between(cls, switches: Sequence[SwitchSpec]) -> Links:
        """Return the links between the switches of a plane."""
        place = {switch.name: number for number, switch in enumerate(switches)}
        ports = [(switch, port) for switch in switches for port in switch.fabric_ports]
        fastest = max((port.link.rate_bps for _, port in ports), default=1)
        of: list[list[int]] = [[] for _ in switches]
        for number, (switch, _) in enumerate(ports):
            of[place[switch.name]].append(number)
        return cls(
            tuple(map(tuple, of)),
            tuple(port.number for _, port in ports),
            tuple(place[switch.name] for switch, _ in ports),
            tuple(place[port.peer.node] for _, port in ports),
            tuple(1000 * fastest // port.link.rate_bps for _, port in ports),
        )


class BalancedPaths:
    """Chooses paths and tracks the load of each link."""

    def __init__(self, links: Links, hosts: Sequence[int]) -> None:
        """Start without load; `hosts` has the number of hosts of each switch, by place, which all send to all."""
        self._links, self._hosts = links, hosts
        self.load = [0] * len(links.port)

    def copy(self) -> BalancedPaths:
        """Return an independent copy of the loads."""
        copied = BalancedPaths(self._links, self._hosts)
        copied.load = list(self.load)
        return copied

    def path(self, tree: Tree, source: int) -> list[int]:
        """Return the links of a tree from a switch to the destination."""
        found = []
        while (link := tree[source]) != NO_LINK:
            found.append(link)
            source = self._links.end[link]
        return found

    def tree_to(
        self,
        destination: int,
        down: Collection[int] = (),
        kept: Sequence[int] = (),
        accepts: Callable[[int, list[int]], bool] | None = None,
    ) -> Tree:
        """Return the paths to a switch that avoid links that are down, and add the load of new paths.

        Args:
            destination: place of the switch.
            down: links that are down.
            kept: by place, the link of a switch that keeps its path, NO_LINK for the others; empty if none do.
            accepts: whether a path from a switch is acceptable; if none is, take the one with the least load.

        """
        links, end = self._links, self._links.end
        hops = {destination: 0}
        tree = [NO_LINK] * len(links.of)
        reached = [destination]
        for place in reached:
            near = hops[place]
            if near and kept and kept[place] != NO_LINK:
                tree[place] = kept[place]
            elif near:
                ways = [link for link in links.of[place] if hops.get(end[link]) == near - 1 and link not in down]
                tree[place] = self._choose(tree, place, ways, accepts)
                if self._hosts[place]:
                    self._send(self.path(tree, place), self._hosts[place] * self._hosts[destination])
            for link in links.of[place]:
                if end[link] not in hops and link not in down:
                    hops[end[link]] = near + 1
                    reached.append(end[link])
        return tree

    def withdraw(self, destination: int, tree: Tree) -> None:
        """Remove the load of a destination's paths from their links."""
        for place, hosts in enumerate(self._hosts):
            if hosts:
                self._send(self.path(tree, place), -hosts * self._hosts[destination])

    def _choose(self, tree: Tree, place: int, ways: list[int], accepts: Callable[[int, list[int]], bool] | None) -> int:
        """Return the link from a switch with the least load on the path to the destination."""
        if len(ways) == 1 and accepts is None:
            return ways[0]
        paths = [[link, *self.path(tree, self._links.end[link])] for link in ways]
        paths.sort(key=lambda path: sum(self.load[link] for link in path))
        chosen = next((path for path in paths if accepts is None or accepts(place, path)), paths[0])
        return chosen[0]

    def _send(self, path: Sequence[int], packets: int) -> None:
        for link in path:
            self.load[link] += packets * self._links.cost[link]
