"""The paths of a plane and their layers, as a subnet manager computes them; and their repair around failures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from weft.controller.routing.balanced_paths import NO_LINK, BalancedPaths, Links, Tree
from weft.controller.routing.dependency_layers import DependencyLayers

ROUNDS = 3
"""In which all paths are chosen; after the first, each with the load of all others in sight."""


@dataclass(frozen=True)
class LayeredPaths:
    """One path from each switch to each that has hosts, and the layers of those that hosts send on.

    Attributes:
        trees: by the place of the destination.
        layers: by the place of the destination, then that of the first switch.

    """

    trees: Mapping[int, Tree]
    layers: Mapping[int, Sequence[int]]

    @property
    def count(self) -> int:
        """Layers in use."""
        return 1 + max((layer for layers in self.layers.values() for layer in layers), default=0)


class SubnetManager:
    """Computes the paths where nothing has failed, and from these the paths around failures.

    A path that no failure has cut keeps its links and its layer; so an event changes what it concerns alone.
    """

    def __init__(self, links: Links, hosts: tuple[int, ...]) -> None:
        """`hosts` is how many each switch has, by place."""
        self._links, self._hosts = links, hosts
        self._balance = BalancedPaths(links, hosts)
        self._dependencies = DependencyLayers(len(links.port))
        self._destinations = [place for place, count in enumerate(hosts) if count]
        trees: dict[int, Tree] = {}
        for _ in range(ROUNDS):
            for destination in self._destinations:
                if destination in trees:
                    self._balance.withdraw(destination, trees[destination])
                trees[destination] = self._balance.tree_to(destination)
        layers = {destination: self._layers_of(tree) for destination, tree in trees.items()}
        self.intact = LayeredPaths(trees, layers)

    def _layers_of(self, tree: Tree) -> list[int]:
        """Return by place the layers of the paths that hosts send on, the shortest first; 0 for others."""
        layers = [0] * len(tree)
        paths = ((place, self._balance.path(tree, place)) for place in self._destinations)
        for place, path in sorted(paths, key=lambda each: len(each[1])):
            layers[place] = self._dependencies.place(path) if path else 0
        return layers

    def around(self, down: Collection[int]) -> LayeredPaths | None:
        """Return the paths without the links that are down; None if the layers do not suffice for them.

        What has been given up still counts: as load, and as dependencies.
        """
        if not down:
            return self.intact
        balance, dependencies = self._balance.copy(), self._dependencies.copy()
        trees, layers = dict(self.intact.trees), dict(self.intact.layers)
        for destination, tree in self.intact.trees.items():
            if cut := self._cut(tree, down):
                repaired = self._repaired(destination, cut, down, balance, dependencies)
                if repaired is None:
                    return None
                trees[destination], layers[destination] = repaired
        return LayeredPaths(trees, layers)

    def _repaired(
        self,
        destination: int,
        cut: Collection[int],
        down: Collection[int],
        balance: BalancedPaths,
        dependencies: DependencyLayers,
    ) -> tuple[Tree, list[int]] | None:
        """Return a tree and its layers with new paths from the switches that are cut off; None without layers."""
        kept = [
            NO_LINK if place in cut else link for place, link in enumerate(self.intact.trees[destination])
        ]
        layers = [0 if place in cut else layer for place, layer in enumerate(self.intact.layers[destination])]
        fit: set[int] = set()

        def accepts(place: int, path: list[int]) -> bool:
            layer = dependencies.place_in_these(path) if self._hosts[place] else 0
            if layer is not None:
                layers[place] = layer
                fit.add(place)
            return layer is not None

        tree = balance.tree_to(destination, down, kept, accepts)
        if any(tree[place] != NO_LINK and place not in fit for place in cut):
            return None
        return tree, layers

    def _cut(self, tree: Tree, down: Collection[int]) -> set[int]:
        """Return the switches whose path leads over a link that is down."""
        whole: dict[int, bool] = {}
        for place, link in enumerate(tree):
            passed = []
            while link != NO_LINK and place not in whole and link not in down:
                passed.append(place)
                place = self._links.end[link]
                link = tree[place]
            is_whole = whole.setdefault(place, link == NO_LINK or link not in down)
            whole.update(dict.fromkeys(passed, is_whole))
        return {place for place, is_whole in whole.items() if not is_whole}


@lru_cache(maxsize=4)
def subnet_manager(links: Links, hosts: tuple[int, ...]) -> SubnetManager:
    """Return the paths of a graph; planes that are the same graph share them."""
    return SubnetManager(links, hosts)
