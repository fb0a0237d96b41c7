"""Base class and checks of traffic kinds that run programs on hosts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from weft.clocks.lab import Progress
from weft.hints import did_you_mean
from weft.quantities.units import shown
from weft.run.plain_hosts import REAL_CLOCK_HAS_KERNELS, Pair
from weft.run.traffic_kinds.base import JoinableItem, check_no_spares
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import NOTHING
from weft.scenario.values import Text
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task

MOST_PAIRS = 10_000
MOST_REQUESTS = 10_000_000
HostName = Annotated[str, Text("a host", r"\S", "h0")]
HostPair = Annotated[str, Text("a pair of hosts", r"^\S+->\S+$", "h0->h1")]
HostPairs = Literal["all"] | list[HostPair]


class PlainItem(JoinableItem):
    """A traffic item that runs programs on hosts' IP stacks."""

    lacking = REAL_CLOCK_HAS_KERNELS
    operations = NOTHING

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that the fabric has no spares, so that hosts keep their ranks."""
        check_no_spares(fabric, key)

    @abstractmethod
    def task(self, fabric: Fabric) -> Task[Any]:
        """Return the item as a task of a running fabric."""

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run the item."""
        task = self.task(fabric)
        progress(task.name)
        fabric.run_together([task], self.time_limit_s(fabric))

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[Any]]:
        """Return `task`, as there is no data to prepare."""
        return self.task


def check_hosts(topology: FabricSpec, names: Iterable[str], key: str) -> None:
    """Check that a fabric has hosts with these names. Raises KeyProblem for `key`."""
    known = [host.name for host in topology.hosts]
    for name in names:
        if name not in known:
            raise KeyProblem(key, f"no host {shown(name)}; {did_you_mean(name, known)}")


def pairs_of(named: str | list[str], topology: FabricSpec) -> list[Pair]:
    """Return pairs of host names; "all" gives all ordered pairs."""
    if isinstance(named, str):
        names = [host.name for host in topology.hosts]
        return [(source, other) for source in names for other in names if source != other]
    return [_pair(each) for each in named]


def _pair(text: str) -> Pair:
    source, _, destination = text.partition("->")
    return source.strip(), destination.strip()


def check_pairs(named: str | list[str], topology: FabricSpec, key: str) -> None:
    """Check that pairs have two different hosts of the fabric, and their number. Raises KeyProblem for `key`."""
    hosts = len(topology.hosts)
    count = hosts * (hosts - 1) if named == "all" else len(named)
    if not 1 <= count <= MOST_PAIRS:
        raise KeyProblem(key, f"{count} pairs of hosts", valid=f"1 to {MOST_PAIRS}")
    for number, pair in enumerate(_listed(named)):
        check_hosts(topology, pair, f"{key}[{number}]")
        if pair[0] == pair[1]:
            raise KeyProblem(f"{key}[{number}]", f"{pair[0]} with itself", valid="two hosts")


def check_requests(count: int, key: str) -> None:
    """Check the number of echo requests, as results keep each of them. Raises KeyProblem for `key`."""
    if count > MOST_REQUESTS:
        raise KeyProblem(key, f"makes {count:,} requests of all pairs", valid=f"up to {MOST_REQUESTS:,}")


def _listed(named: str | list[str]) -> Iterator[Pair]:
    yield from map(_pair, named if isinstance(named, list) else ())
