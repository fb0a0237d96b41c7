"""Computes the paths of a plane and their layers, as a subnet manager does, and repairs them after failures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from weft.controller.routing.balanced_paths import NO_LINK, BalancedPaths, Links, Tree
from weft.controller.routing.dependency_layers import DependencyLayers

ROUNDS = 3
"""Rounds of choosing all paths; from the second round on, each choice sees the load of all other paths."""


@dataclass(frozen=True)
class LayeredPaths:
    """One path from each switch to each switch with hosts, and the layers of the paths that hosts use.

    Attributes:
        trees: paths by the destination's place.
        layers: layers by the destination's place, then the first switch's place.

    """

    trees: Mapping[int, Tree]
    layers: Mapping[int, Sequence[int]]

    @property
    def count(self) -> int:
        """Number of layers in use."""
        return 1 + max((layer for layers in self.layers.values() for layer in layers), default=0)


class SubnetManager:
    """Computes the paths of the intact plane, and derives the paths around failures from them.

    A path that is not cut keeps its links and its layer, so that a failure changes only affected paths. If the others
    then do not fit into the layers, all paths are recomputed.
    """

    def __init__(self, links: Links, hosts: tuple[int, ...]) -> None:
        """Compute the intact paths; `hosts` has the number of hosts of each switch, by place."""
        self._links, self._hosts = links, hosts
        self._destinations = [place for place, count in enumerate(hosts) if count]
        self._balance, self._dependencies, self.intact = self._computed()

    def _computed(self, down: Collection[int] = ()) -> tuple[BalancedPaths, DependencyLayers, LayeredPaths]:
        """Return all paths that avoid the links that are down, with their load and dependencies."""
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
        """Choose paths that fit into existing layers if possible, the others by load alone.

        Returns:
            The tree, the layers of the new paths by the place of their first switch, and the places of first switches
            with paths that do not fit.

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
        """Return the paths that avoid the links that are down; None if they need more layers."""
        if not down:
            return self.intact
        repaired = self._repaired(down)
        if repaired is None:
            _, _, afresh = self._computed(down)
            repaired = afresh if afresh.count <= self.intact.count else None
        return repaired

    def _repaired(self, down: Collection[int]) -> LayeredPaths | None:
        """Return the paths with only the cut ones replaced; None if the replacements need more layers.

        Abandoned paths still count as load and as dependencies.
        """
        balance, dependencies = self._balance.copy(), self._dependencies.copy()
        trees, layers = dict(self.intact.trees), dict(self.intact.layers)
        for destination, tree in self.intact.trees.items():
            if cut := self._cut(tree, down):
                kept = [NO_LINK if place in cut else link for place, link in enumerate(tree)]
                trees[destination], found, unfit = self._fitted(destination, balance, dependencies, down, kept)
                if unfit:
                    return None
                layers[destination] = [
                    found.get(place, 0 if place in cut else layer) for place, layer in enumerate(layers[destination])
                ]
        return LayeredPaths(trees, layers)

    def _cut(self, tree: Tree, down: Collection[int]) -> set[int]:
        """Return the switches with a path over a link that is down."""
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
    """Return the paths of a graph; planes with the same graph share them."""
    return SubnetManager(links, hosts)
