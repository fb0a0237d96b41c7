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

    A path that no failure has cut keeps its links and its layer, so that an event changes what it concerns alone. Where
    the others then fit into no layer, all paths are computed afresh.
    """

    def __init__(self, links: Links, hosts: tuple[int, ...]) -> None:
        """`hosts` is how many each switch has, by place."""
        self._links, self._hosts = links, hosts
        self._destinations = [place for place, count in enumerate(hosts) if count]
        self._balance, self._dependencies, self.intact = self._computed()

    def _computed(self, down: Collection[int] = ()) -> tuple[BalancedPaths, DependencyLayers, LayeredPaths]:
        """Return all paths without the links that are down, with their load and dependencies."""
        balance = BalancedPaths(self._links, self._hosts)
        dependencies = DependencyLayers(len(self._links.port))
        trees: dict[int, Tree] = {}
        layers: dict[int, list[int]] = {}
        for _ in range(ROUNDS):
            for destination in self._destinations:
                if destination in trees:
                    balance.withdraw(destination, trees[destination])
                trees[destination] = balance.tree_to(destination, down)
        for destination in self._destinations:
            balance.withdraw(destination, trees[destination])
            tree, found, unfit = self._fitted(destination, balance, dependencies, down)
            for place in unfit:
                found[place] = dependencies.place(balance.path(tree, place))
            trees[destination] = tree
            layers[destination] = [found.get(place, 0) for place in range(len(self._hosts))]
        return balance, dependencies, LayeredPaths(trees, layers)

    def _fitted(
        self,
        destination: int,
        balance: BalancedPaths,
        dependencies: DependencyLayers,
        down: Collection[int] = (),
        kept: Sequence[int] = (),
    ) -> tuple[Tree, dict[int, int], list[int]]:
        """Choose paths that fit into the layers so far where there are any, the others by load alone.

        Returns:
            The tree, the layers of the new paths by the place of their first switch, and the places whose paths do not
            fit.

        """
        layers: dict[int, int] = {}
        unfit: dict[int, None] = {}

        def accepts(place: int, path: list[int]) -> bool:
            layer = dependencies.place_in_these(path) if self._hosts[place] else 0
            if layer is None:
                unfit[place] = None
                return False
            layers[place] = layer
            return True

        tree = balance.tree_to(destination, down, kept, accepts)
        return tree, layers, [place for place in unfit if place not in layers]

    def around(self, down: Collection[int]) -> LayeredPaths | None:
        """Return the paths without the links that are down; None if the layers do not suffice for them."""
        if not down:
            return self.intact
        repaired = self._repaired(down)
        if repaired is None:
            _, _, afresh = self._computed(down)
            repaired = afresh if afresh.count <= self.intact.count else None
        return repaired

    def _repaired(self, down: Collection[int]) -> LayeredPaths | None:
        """Return the same paths but for those that are cut; None if the layers do not suffice for these.

        What has been given up still counts: as load, and as dependencies.
        """
        balance, dependencies = self._balance.copy(), self._dependencies.copy()
        trees, layers = dict(self.intact.trees), dict(self.intact.layers)
        for destination, tree in self.intact.trees.items():
            if cut := self._cut(tree, down):
                kept = [NO_LINK if place in cut else link for place, link in enumerate(tree)]
                trees[destination], found, unfit = self._fitted(
                    destination, balance, dependencies, down, kept
                )
                if unfit:
                    return None
                layers[destination] = [
                    found.get(place, 0 if place in cut else layer)
                    for place, layer in enumerate(layers[destination])
                ]
        return LayeredPaths(trees, layers)

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
