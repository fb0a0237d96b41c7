"""Together: items that run concurrently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from weft.clocks.lab import Progress
from weft.quantities.units import PS_PER_S
from weft.results.kinds import ResultKind
from weft.run.traffic_kinds.base import JoinableItem, Run, TrafficItem
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import TRAFFIC_KINDS, TrafficBesideOthers
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


class TogetherTraffic(TrafficItem):
    """Items that run concurrently. Counts of hosts (retransmissions, CNPs) include all of them."""

    kind = "together"
    results: ClassVar[ResultKind[Any] | None] = None

    together: list[TrafficBesideOthers] = Field(min_length=1)
    """Traffic items of one run each; `at: TIME` delays an item relative to the common start."""

    @property
    def _items(self) -> list[JoinableItem]:
        return [item for item in self.together if isinstance(item, JoinableItem)]

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that each is a single run that can run concurrently with others."""
        for number, item in enumerate(self.together):
            own = f"{key}.together[{number}]"
            if not isinstance(item, JoinableItem):
                valid = ", ".join(kind for kind, section in TRAFFIC_KINDS.items() if section.joins_others)
                raise KeyProblem(own, f"{item.kind} only runs alone", valid=valid)
            item.check(fabric, own)
            item.check_single(own)

    def with_parts(self, key: str) -> Iterator[tuple[str, TrafficItem]]:
        """Yield this item and its items."""
        yield key, self
        for number, item in enumerate(self._items):
            yield f"{key}.together[{number}]", item

    def posted_operations(self, key: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the operations of all items."""
        for number, item in enumerate(self.together):
            yield from item.posted_operations(f"{key}.together[{number}]")

    def named_classes(self, key: str) -> Iterator[tuple[str, int]]:
        """Yield the classes of all items."""
        for number, item in enumerate(self.together):
            yield from item.named_classes(f"{key}.together[{number}]")

    def named_tenants(self, key: str) -> Iterator[tuple[str, str, bool]]:
        """Yield the tenants of all items."""
        for number, item in enumerate(self.together):
            yield from item.named_tenants(f"{key}.together[{number}]")

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check each item against the fabric."""
        for number, item in enumerate(self._items):
            item.check_fabric(topology, f"{key}.together[{number}]")

    def check_classes(self, topology: FabricSpec, seed: int) -> None:
        """Check the users' classes that the items name."""
        for item in self._items:
            item.check_classes(topology, seed)

    def reduces_in_network(self, fabric: FabricSpec) -> bool:
        """Return whether switches reduce for one of the items."""
        return any(item.reduces_in_network(fabric) for item in self._items)

    def data_bytes(self, ranks: int) -> int:
        """Return the memory of all items' data, in bytes."""
        return sum(item.data_bytes(ranks) for item in self._items)

    def prepare(self, ranks: int, seed: int) -> Run:
        """Make the data of all items."""
        made = [(item.prepare_task(ranks, seed), item.at) for item in self._items]

        def run(fabric: Fabric, progress: Progress) -> None:
            tasks = [make(fabric).at(at_ps) for make, at_ps in made]
            progress(f"together: {', '.join(task.name for task in tasks)}")
            limits_s = [
                item.time_limit_s(fabric) + item.at / PS_PER_S * fabric.options.dilation for item in self._items
            ]
            fabric.run_together(tasks, max(limits_s))

        return run

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Make the data and run all items."""
        self.prepare(fabric.topology.rank_count, fabric.options.seed)(fabric, progress)
