"""Base classes of traffic kinds: how an item is checked, prepared and run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from weft.clocks.lab import Progress
from weft.hints import did_you_mean
from weft.quantities.example import Example
from weft.quantities.readable import counted
from weft.quantities.units import shown
from weft.results.flows import FLOWS
from weft.results.kinds import ResultKind
from weft.scenario.model import Scenario
from weft.scenario.options import Service
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import FLOW_OPERATIONS, TrafficSection
from weft.scenario.values import DataClass, Text
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.jobs import Job
from weft.traffic.jobs.classes import JobClasses

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task

DEFAULT_TIME_LIMIT_S = 300.0
Run = Callable[["Fabric", Progress], None]


class TrafficItem(TrafficSection):
    """An item that can be run. A kind defines its name, its keys and `run`, and overrides other methods as needed."""

    results: ClassVar[ResultKind[Any] | None]
    """Kind of its results; several kinds may share one. None if only its parts have results."""
    lacking: ClassVar[str] = ""
    """Why it cannot run under the real clock; empty if it can."""
    sends_any_packets: ClassVar[bool] = False
    """Whether users write its packets, which may then have any address."""
    runs_commands: ClassVar[bool] = False
    """Whether it runs commands in hosts."""

    @property
    def copies_key(self) -> str:
        """The key of copies between accelerators and host memory that it makes itself; empty if it makes none."""
        return ""

    def with_parts(self, key: str) -> Iterator[tuple[str, TrafficItem]]:
        """Yield the item, with `key`, and the items that it runs, with their keys."""
        yield key, self

    @abstractmethod
    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run the item to its end; report the current activity to `progress`, in words.

        `fabric` has methods for collectives, training steps and flows, which record their results.

        Raises:
            BadInputError: it cannot run on this fabric. CheckFailedError: it failed or did not end in time.
        """

    def prepare(self, ranks: int, seed: int) -> Run:
        """Make the data before the fabric is up, as this can disturb its clock; return what runs the item."""
        return self.run

    def data_bytes(self, ranks: int) -> int:
        """Return the bytes of memory for a rank's data; the data of all items exist at once."""
        return 0

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check the item against the fabric's links and NICs. Raises KeyProblem below `key`, the item's key."""

    def largest_packet(self, ip_version: int) -> tuple[str, int]:
        """Return the key that sets the size of its IP packets, and the size in bytes; "" and 0 without one."""
        return "", 0

    def check_classes(self, topology: FabricSpec, seed: int) -> None:
        """Check the users' classes that it names, before anything is built. Raises BadInputError."""

    def reduces_in_network(self, fabric: FabricSpec) -> bool:
        """Return whether the fabric's switches reduce data for it."""
        return False

    @property
    def services(self) -> tuple[Service, ...]:
        """Services that switches must have besides forwarding and reductions."""
        return ()

    def as_job(self, topology: FabricSpec, seed: int) -> Job | None:
        """Return the item as a job, which can be written as a trace; None if it is not a job, such as flows.

        With several algorithms the job uses the first one.
        """
        return None


class JoinableItem(TrafficItem):
    """An item that can run concurrently with others, in `together`."""

    joins_others = True

    @abstractmethod
    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[Any]]:
        """Make the data, as `prepare`; return a function that makes the item's single task, from `fabric.tasks`."""

    def check_single(self, key: str) -> None:
        """Check that it is a single run, as `together` requires. Raises KeyProblem for a key below `key`."""

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return the seconds after which its run has failed, in real time or of the virtual clock."""
        return DEFAULT_TIME_LIMIT_S


class JobItem(JoinableItem):
    """An item that is a job; its kinds of traffic may use different classes."""

    classes: Annotated[
        dict[Annotated[str, Text("a kind of traffic", r"\S", "data")], DataClass],
        Example("{data: 2}", ("scheduling.classes=[2]",)),
    ] = Field(default={})
    """Class of each kind of its traffic, one of `scheduling.classes`; kinds not named use class 3."""

    def named_classes(self, key: str) -> Iterator[tuple[str, int]]:
        """Yield the key and the class of each kind of traffic."""
        for name, number in self.classes.items():
            yield f"{key}.classes.{name}", number

    def check_kinds(self, kinds: Sequence[str], key: str) -> None:
        """Check that `classes` names only these kinds of traffic. Raises KeyProblem for a key below `key`."""
        check_named_kinds(self.classes, kinds, f"{key}.classes")

    def with_classes(self, job: Job) -> Job:
        """Return a job with the item's classes, which replace the job's own for the same kinds."""
        if not self.classes:
            return job
        sent = JobClasses(job).names
        own = {name: each for name, each in self.classes.items() if name in sent}
        return replace(job, traffic_classes=job.traffic_classes | own)


def check_named_kinds(names: Iterable[str], kinds: Sequence[str], key: str) -> None:
    """Check that names are kinds of traffic. Raises KeyProblem for `key`, the names' key."""
    for name in names:
        if name not in kinds:
            raise KeyProblem(key, f"no kind of traffic {shown(name)}; {did_you_mean(name, kinds)}")


def items_of(scenario: Scenario) -> tuple[TrafficItem, ...]:
    """Return a scenario's traffic as runnable items."""
    items = tuple(item for item in scenario.traffic if isinstance(item, TrafficItem))
    assert len(items) == len(scenario.traffic), "a kind of traffic is a TrafficItem"
    return items


def require_one(values: Sequence[object], key: str) -> None:
    """Check that a list in an item of `together` has one element, so that the item is one run. Raises KeyProblem."""
    if len(values) != 1:
        raise KeyProblem(key, f"together with other items there must be one, there are {len(values) or 'none'}")


def check_ranks(ranks: Sequence[int], count: int, fabric: TopologySection, key: str) -> None:
    """Check that a job's ranks are distinct ranks of the fabric. Raises KeyProblem for `key`, their key."""
    if len(ranks) != count or len(set(ranks)) != count:
        raise KeyProblem(
            key,
            f"{counted(len(ranks), 'rank')}, {len(set(ranks))} distinct, for a job of {count}",
            valid=f"{count}",
        )
    if max(ranks) >= fabric.rank_count:
        raise KeyProblem(key, f"rank {max(ranks)}", valid=f"0 to {fabric.rank_count - 1}")


def check_no_spares(fabric: TopologySection, key: str) -> None:
    """Check that the fabric has no spares, for an item of programs, which stay on their hosts. Raises KeyProblem."""
    if fabric.spares:
        raise KeyProblem("fabric.spares", f"{fabric.spares}: {key} has programs of hosts, not of ranks", valid="0")


def check_queue_pairs(queue_pairs: int, size_bytes: int, key: str) -> None:
    """Check that each queue pair of a flow has a byte to write. Raises KeyProblem below `key`, the item's key."""
    if queue_pairs > size_bytes:
        raise KeyProblem(f"{key}.queue_pairs", f"{queue_pairs} for flows of {size_bytes} B", valid=f"1 to {size_bytes}")


class FlowItem(TrafficItem):
    """An item of flows between ranks; a name of a host is the rank that the host has at first."""

    results: ClassVar[ResultKind[Any] | None] = FLOWS
    operations = FLOW_OPERATIONS

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that the fabric has at least two ranks."""
        if fabric.rank_count < 2:
            raise KeyProblem(key, f"flows need 2 hosts with ranks, the fabric has {fabric.rank_count}")


class FlowsBesideOthers(FlowItem, JoinableItem):
    """Flows between hosts that can run concurrently with other items."""

    @abstractmethod
    def task(self, fabric: Fabric) -> Task[Any]:
        """Return the item as a task of a running fabric."""

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[Any]]:
        """Return `task`, as there is no data to prepare."""
        return self.task


class FlowsOfTenants(FlowsBesideOthers):
    """Flows that may be a tenant's."""

    tenant: Annotated[str, Example("blue", ("tenants.blue={share: 0.5}",))] = ""
    """Tenant whose share of links its packets have, a name in `tenants`; by default nobody's."""

    def named_tenants(self, key: str) -> Iterator[tuple[str, str, bool]]:
        """Yield the key of its tenant, and the tenant; switches reduce nothing."""
        yield f"{key}.tenant", self.tenant, False
