"""Counters in switches, to which ranks add without locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from weft.clocks.lab import Progress
from weft.controller.services import MAX_CELLS, MAX_CLIENT_ENTRIES, MAX_WINDOW
from weft.quantities.definitions import whole
from weft.quantities.example import Example
from weft.quantities.readable import counted
from weft.results.synchronisation import COUNTERS
from weft.run.service_ranks import FabricRank, check_ranks_of_group
from weft.run.synchronisation import counter_task
from weft.run.traffic_kinds.base import TrafficItem
from weft.scenario.options import Service
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import NOTHING
from weft.topologies.kinds.base import TopologySection
from weft.traffic.commands.services import ServiceRequests

if TYPE_CHECKING:
    from weft.run.fabric import Fabric

MAX_ADDITIONS = 1_000_000


class CounterTraffic(TrafficItem):
    """Ranks add to counters in a switch, each addition exactly once; add `synchronisation` to `services`."""

    kind = "counter"
    results: ClassVar = COUNTERS
    operations = NOTHING

    counter: Annotated[int, whole(1, 100_000)]
    """Additions of each rank."""
    operation: Annotated[
        Literal["fetch_and_add", "compare_and_swap"], Example("compare_and_swap", (".outstanding=1",))
    ] = "fetch_and_add"
    """`compare_and_swap`: a rank replaces the value that it expects by the sum, and retries if it finds another.
    """
    counters: Annotated[int, whole(1, MAX_CELLS)] = 1
    """Number of counters, to which each rank adds in turn."""
    outstanding: Annotated[int, whole(1, MAX_WINDOW)] = 1
    """Outstanding requests of a rank, a power of two; 1 with `compare_and_swap`."""
    addend: Annotated[int, whole(1, 2**32 - 1)] = 1
    """Value that each addition adds, modulo 2^64."""
    ranks: list[FabricRank] | None = Field(None, min_length=1)
    """The fabric's ranks that add; by default all."""

    @property
    def services(self) -> tuple[Service, ...]:
        """Services that switches must have."""
        return ("synchronisation",)

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that the ranks exist and are distinct, and that switches can record their requests."""
        ranks = check_ranks_of_group(fabric, self.ranks, key)
        if self.outstanding.bit_count() != 1:
            raise KeyProblem(f"{key}.outstanding", f"{self.outstanding}", valid="a power of two")
        if self.outstanding > 1 and self.operation == "compare_and_swap":
            raise KeyProblem(
                f"{key}.outstanding",
                f"{self.outstanding} with compare_and_swap",
                valid="1, so that a rank does not defeat itself",
            )
        if ranks * self.outstanding > MAX_CLIENT_ENTRIES:
            raise KeyProblem(
                f"{key}.outstanding",
                f"{self.outstanding} of {ranks} ranks",
                valid=f"up to {MAX_CLIENT_ENTRIES // ranks}",
            )
        if ranks * self.counter > MAX_ADDITIONS:
            raise KeyProblem(
                f"{key}.counter", f"{self.counter} of {ranks} ranks", valid=f"up to {MAX_ADDITIONS // ranks}"
            )

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run all additions."""
        ranks = self.ranks or list(range(fabric.topology.rank_count))
        progress(f"{counted(self.counter, 'addition')} of each of {counted(len(ranks), 'rank')}")
        requests = ServiceRequests(self.operation, self.counter, self.counters, self.outstanding, self.addend)
        fabric.run_together([counter_task(fabric, ranks, requests)])
