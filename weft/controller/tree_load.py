"""What trees of present jobs take of a fabric's switches and links, by which new ones are placed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from weft.controller.tenants import exceeds
from weft.topologies import Endpoint, PortSpec, SwitchSpec

Preference = tuple[bool, int, int, float, int, int]
Order = Callable[[str], int]
"""From the name of a switch, or of a port, to its place among others that are equally good."""


def as_listed(_name: str) -> int:
    """Return the same place for all: they stay in the fabric's order."""
    return 0


@dataclass(frozen=True)
class TreeLoad:
    """What is taken, and what a new tree needs.

    Attributes:
        roots: how many trees each switch is the root of.
        promised: what trees are promised of each link, by its upper end.
        own: of that, what the new tree's tenant has.
        most: up to which a tenant's trees may be promised a link; None: no limit.
        weight: what the new tree is promised of each link.
        full: switches that have not got the slots.
        order: of what is equally good otherwise, lowest first.

    """

    roots: Mapping[str, int] = field(default_factory=dict)
    promised: Mapping[Endpoint, float] = field(default_factory=dict)
    own: Mapping[Endpoint, float] = field(default_factory=dict)
    most: float | None = None
    weight: float = 1.0
    full: Container[str] = ()
    order: Order = as_listed

    def unseen(self, order: Order = as_listed) -> TreeLoad:
        """Return this with the same slots and quotas, but without the trees of others, and in another order."""
        return replace(self, roots={}, promised={}, order=order)

    def of_link(self, upper: Endpoint) -> float:
        """Return what trees are promised of a link."""
        return self.promised.get(upper, 0.0)

    def lacks(self, upper: Endpoint) -> bool:
        """Return whether a link has not got what the new tree needs."""
        return exceeds(self.own.get(upper, 0.0) + self.weight, self.most)

    def preference(self, root: SwitchSpec, parents: Mapping[str, PortSpec]) -> Preference:
        """Return a sort key of a root and its tree: room, tier, size, fullest link, the root's trees, order."""
        uppers = [upper_end(port) for port in parents.values()]
        return (
            not self.has_room([root.name, *parents]) or any(map(self.lacks, uppers)),
            root.tier,
            len(parents),
            max(map(self.of_link, uppers), default=0.0),
            self.roots.get(root.name, 0),
            self.order(root.name),
        )

    def has_room(self, switches: Iterable[str]) -> bool:
        """Return whether switches have the slots."""
        return not any(name in self.full for name in switches)


IDLE = TreeLoad()
"""Of a fabric without trees."""


def upper_end(up: PortSpec) -> Endpoint:
    """Return the upper end of a link, given the port at its lower end."""
    return Endpoint(up.peer.node, up.peer.port)
