"""A parameter store: clients pull and push blocks, and a switch may answer in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from weft.clocks.lab import Progress
from weft.controller.features.parameter_cache import MAX_CACHED_BLOCKS
from weft.controller.services import MAX_WINDOW
from weft.quantities.definitions import number, whole
from weft.quantities.readable import counted
from weft.results.parameter_stores import PARAMETER_STORES
from weft.run.parameter_stores import StoreUse, parameter_store_task
from weft.run.service_ranks import FabricRank, check_service_ranks, clients_of
from weft.run.traffic_kinds.base import TrafficItem
from weft.scenario.options import Service
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import NOTHING
from weft.topologies.kinds.base import TopologySection
from weft.traffic.commands.parameters import ParameterRequests

if TYPE_CHECKING:
    from weft.run.fabric import Fabric

MAX_REQUESTS = 1_000_000


class ParameterStoreTraffic(TrafficItem):
    """Clients pull blocks of 128 B from a store and push others; the store's switch answers for blocks it caches."""

    kind = "parameter_store"
    results: ClassVar = PARAMETER_STORES
    operations = NOTHING

    parameter_store: FabricRank
    """The fabric's rank with the store."""
    clients: list[FabricRank] | None = Field(None, min_length=1)
    """The fabric's ranks that send requests; by default all others."""
    blocks: Annotated[int, whole(1, 1 << 20)] = 4096
    """Blocks of the store, the most popular first."""
    cached: Annotated[int, whole(0, MAX_CACHED_BLOCKS)] = 0
    """Number of first blocks that the switch caches; it answers for a block while it has the latest version."""
    requests: Annotated[int, whole(1, 100_000)] = 1000
    """Requests of each client."""
    pushes: Annotated[float, number(0, 1)] = 0.0
    """Share of the requests that write a block."""
    skew: Annotated[float, number(0, 10)] = 0.0
    """The probability of block k is proportional to k^-skew (Zipf); with 0 all blocks are equally likely."""
    outstanding: Annotated[int, whole(1, MAX_WINDOW)] = 1
    """Outstanding requests of a client, a power of two."""

    @property
    def services(self) -> tuple[Service, ...]:
        """Services that switches must have."""
        return ("parameter_cache",)

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check ranks, blocks, and the number of requests."""
        clients = check_service_ranks(fabric, [self.parameter_store], self.clients, None, key, "parameter_store")
        if self.outstanding.bit_count() != 1:
            raise KeyProblem(f"{key}.outstanding", f"{self.outstanding}", valid="a power of two")
        if self.cached > self.blocks:
            raise KeyProblem(f"{key}.cached", f"{self.cached} of {self.blocks} blocks", valid="up to these")
        if clients * self.requests > MAX_REQUESTS:
            raise KeyProblem(
                f"{key}.requests",
                f"{self.requests} of {clients} clients",
                valid=f"up to {MAX_REQUESTS // clients}",
            )

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run all requests."""
        clients = clients_of(fabric.topology.rank_count, [self.parameter_store], self.clients)
        progress(f"{counted(self.requests, 'request')} of each of {counted(len(clients), 'client')}")
        requests = ParameterRequests(
            self.requests, self.blocks, self.outstanding, self.skew, self.pushes, fabric.options.seed
        )
        use = StoreUse(self.parameter_store, tuple(clients), self.cached, requests)
        fabric.run_together([parameter_store_task(fabric, use)])
