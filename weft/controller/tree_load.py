"""Load of present jobs' trees on a fabric's switches and links, used to place new trees."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from weft.controller.tenants import exceeds
from weft.topologies import Endpoint, PortSpec, SwitchSpec

Preference = tuple[bool, int, int, float, int, int]
Order = Callable[[str], int]
"""Maps the name of a switch or a port to its place among equally good ones."""


def as_listed(_name: str) -> int:
    """Return the same place for all names, which keeps the fabric's order."""
    return 0


@dataclass(frozen=True)
class TreeLoad:
    """Load of present trees, and the needs of a new tree.

    Attributes:
        roots: number of trees rooted at each switch.
        promised: share of each link promised to trees, by its upper end.
        own: the part of `promised` that belongs to the new tree's tenant.
        most: largest share of a link that a tenant's trees may be promised; None: no limit.
        weight: share of each link promised to the new tree.
        full: switches that lack the slots.
        order: breaks ties, lowest first.

    """

    roots: Mapping[str, int] = field(default_factory=dict)
    promised: Mapping[Endpoint, float] = field(default_factory=dict)
    own: Mapping[Endpoint, float] = field(default_factory=dict)
    most: float | None = None
    weight: float = 1.0
    full: Container[str] = ()
    order: Order = as_listed

    def unseen(self, order: Order = as_listed) -> TreeLoad:
        """Return a copy with the same slots and quotas, without the load of other trees, and with another order."""
        return replace(self, roots={}, promised={}, order=order)

    def of_link(self, upper: Endpoint) -> float:
        """Return the share of a link promised to trees."""
        return self.promised.get(upper, 0.0)

    def lacks(self, upper: Endpoint) -> bool:
        """Return whether a link lacks the share that the new tree needs."""
        return exceeds(self.own.get(upper, 0.0) + self.weight, self.most)

    def preference(self, root: SwitchSpec, parents: Mapping[str, PortSpec]) -> Preference:
        """Return a sort key for a root and its tree: room, tier, size, fullest link, trees at the root, order."""
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
"""Load of a fabric without trees."""


def upper_end(up: PortSpec) -> Endpoint:
    """Return the upper end of a link, given the port at its lower end."""
    return Endpoint(up.peer.node, up.peer.port)
