"""Collective: one of `weft.traffic.collectives`, verified against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from weft.clocks.lab import Progress
from weft.errors import BadInputError, translated
from weft.jobs.digits_mlp import HIDDEN_UNITS, DigitsMlp
from weft.jobs.drawn_digits import IMAGES, drawn_digits
from weft.jobs.plain_jobs import collectives_job
from weft.quantities.definitions import MessageSize, whole
from weft.quantities.example import Example
from weft.results.collectives import COLLECTIVES, LENGTHS, CollectiveResult
from weft.run.algorithms import (
    any_in_network,
    check_algorithms,
    check_group,
    check_paths,
    may_reduce,
    suitable,
)
from weft.run.clear_to_send import check_way_of_messages, objection_to_clear_to_send, require_plain_messages
from weft.run.collectives import CollectiveRequest, random_elements
from weft.run.nccl import objection_to_nccl
from weft.run.protocols import objection_to_protocol
from weft.run.traffic_kinds.base import JoinableItem, Run, check_ranks, require_one
from weft.scenario.clear_to_send import ClearToSendSection
from weft.scenario.pair_sizes import PairsSection
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import AlgorithmOrChoice, CollectiveName
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.aggregation_format import Operation, OperationName
from weft.traffic.collectives import AVERAGE_NEEDS_LANES, NCCL, Collective, collective_named
from weft.traffic.collectives.alltoallv import AllToAllV
from weft.traffic.data_types import DataType, DataTypeName, elements_of
from weft.traffic.extensions import ExtensionError
from weft.traffic.jobs import CollectiveCall, Job
from weft.traffic.protocols import NONE, ProtocolChoice
from weft.traffic.training import GRADIENT_COLLECTIVE

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


def mlp_gradients(ranks: int, seed: int, hidden_units: int = HIDDEN_UNITS) -> list[NDArray[np.float32]]:
    """Return one flat float32 gradient vector per rank (64·H + H + H·10 + 10 elements each).

    Each is the gradient of the mean loss of the rank's shard at the same seeded weights, as in data-parallel training.
    The images are Weft's own: with scikit-learn's, no plain installation could run the first lab.

    Raises:
        BadInputError: there are more ranks than images.
    """
    model = DigitsMlp(ranks, seed, hidden_units, batch=IMAGES, digits=drawn_digits())
    return [model.gradient(model.initial, rank, 0) for rank in range(ranks)]


DEFAULT_SIZE_BYTES = 65536
Inputs = list[NDArray[Any]]
"""One buffer for each rank."""


class CollectiveTraffic(JoinableItem):
    """A collective, run once per algorithm and size, each result checked against NumPy."""

    kind = "collective"
    results = COLLECTIVES
    files: ClassVar[tuple[str, ...]] = ("pairs.matrix",)

    collective: CollectiveName
    """One of Weft's collectives, or path/to/file.py:Class, your own `weft.Collective`, or path/to/file.xml:COLLECTIVE,
    an algorithm of MSCCL."""
    algorithms: list[AlgorithmOrChoice] | None = Field(None, min_length=1)
    """Algorithms; by default all that suit the collective and the fabric. `auto`: the one predicted to be fastest;
    `nccl`: the one that NCCL would choose, with its protocol."""
    dtype: DataTypeName = "float32"
    """Type of the elements."""
    operation: OperationName = "sum"
    """Operation of a collective that reduces; and, or and xor are for integers."""
    root: Annotated[int, whole(0, 2**20), Example("3", (".collective=broadcast",))] = 0
    """Root rank: the source of a broadcast or scatter, the destination of a reduce or gather."""
    data: Literal["random", "mlp-gradients", "lengths"] = "random"
    """`lengths`: packets carry lengths in place of data (except for in-network reductions); nothing is checked."""
    sizes: list[MessageSize] = Field(default=[])
    """Sizes as nccl-tests counts them; by default 64KiB, or the size of `pairs.matrix`. A barrier has no size."""
    pairs: Annotated[PairsSection | None, Example("{skew: 0.8}", (".collective=alltoallv",))] = None
    """Sizes from each rank to each in an all-to-all-v. `sizes` are the largest sum of a rank."""
    ranks: list[Annotated[int, whole(0, 1 << 20)]] | None = Field(None, min_length=1)
    """The fabric's ranks that take part, in order; by default all. Requires `algorithms`."""
    tenant: Annotated[str, Example("blue", ("tenants.blue={slots: 512}",))] = ""
    """Tenant whose share its traffic has, and who is charged for its in-network reductions, a name in `tenants`; by
    default none."""
    protocol: Annotated[ProtocolChoice | None, Example("ll", (".algorithms=[ring]",))] = None
    """NCCL's protocol in which messages travel, with the costs in `protocols`: `simple`, `ll`, `ll128`, or `auto`, by
    size. By default none: messages travel as they are, and steps go on at once. Requires `algorithms`."""
    clear_to_send: Annotated[ClearToSendSection | None, Example("{window: 4}", (".algorithms=[ring]",))] = None
    """Receiver-driven admission: ranks send only what the receiver has cleared, by packets ahead of all data. By
    default they do not wait. Requires `algorithms`."""
    repetitions: Annotated[int, whole(1, 1000)] = 1
    """Runs of each size with each algorithm; results have the mean, least and largest time."""
    warmup: Annotated[int, whole(0, 1000)] = 0
    """Runs before these that do not count."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check data, root, sizes and algorithms against the collective and the fabric."""
        if self.data == "mlp-gradients" and self.sizes:
            raise KeyProblem(f"{key}.sizes", "mlp-gradients have the size of their model, leave sizes out")
        ranks = self._count(fabric.rank_count)
        self._check_pairs(ranks, key)
        with translated(ExtensionError, KeyProblem, f"{key}.collective"):
            collective = self._definition()
        if self.data == "mlp-gradients" and collective.name != GRADIENT_COLLECTIVE:
            raise KeyProblem(
                f"{key}.data", f"mlp-gradients are for an {GRADIENT_COLLECTIVE}, not for {collective.name}"
            )
        if self.sizes and not collective.has_size:
            raise KeyProblem(f"{key}.sizes", f"a {collective.name} has no size", valid="leave sizes out")
        if self.ranks is not None:
            check_ranks(self.ranks, ranks, fabric, f"{key}.ranks")
            if not self.algorithms:
                raise KeyProblem(f"{key}.algorithms", "with ranks there must be one or more")
        if self.root >= ranks:
            raise KeyProblem(f"{key}.root", f"{self.root} is not one of the ranks 0 to {ranks - 1}")
        element_bytes = DataType(self.dtype).element_bytes
        for number, size in enumerate(self.sizes):
            if size % element_bytes:
                raise KeyProblem(
                    f"{key}.sizes[{number}]",
                    f"{size} B is not a multiple of {element_bytes}, the size of {self.dtype}",
                )
            least_bytes = collective.least_elements(ranks) * element_bytes
            if size < least_bytes:
                raise KeyProblem(
                    f"{key}.sizes[{number}]",
                    f"{size} B leave some of {ranks} ranks nothing of the {collective.name}",
                    valid=f"{least_bytes} B or more",
                )
        operation = Operation[self.operation.upper()]
        if objection := collective.objection_to_operation(operation, DataType(self.dtype)):
            raise KeyProblem(f"{key}.operation", objection)
        if NCCL in (self.algorithms or ()) and (
            objection := objection_to_nccl(collective, operation, DataType(self.dtype))
        ):
            raise KeyProblem(f"{key}.algorithms", objection)
        self._check_messages(collective, fabric, key)
        if self.ranks is None:
            check_algorithms(collective, self.algorithms or (), fabric, key, self.root, DataType(self.dtype), operation)

    def _check_pairs(self, ranks: int, key: str) -> None:
        """Check sizes of pairs against the collective, the ranks, the sizes and the type of the elements."""
        if self.pairs is None:
            return
        if self.collective != AllToAllV.name:
            raise KeyProblem(f"{key}.pairs", f"{self.collective} has none", valid=f"with collective: {AllToAllV.name}")
        element_bytes = DataType(self.dtype).element_bytes
        with translated(BadInputError, KeyProblem, f"{key}.pairs.matrix"):
            self.pairs.check(ranks, element_bytes if not self.sizes else 1)
            sizes = self.pairs.sizes(0)
        least_bytes = sizes.least_elements(ranks) * element_bytes
        for number, size in enumerate(self.sizes):
            if size < least_bytes:
                raise KeyProblem(
                    f"{key}.sizes[{number}]", f"{size} B leave no pair an element", valid=f"{least_bytes} B or more"
                )

    def _check_messages(self, collective: Collective, fabric: TopologySection, key: str) -> None:
        """Check the keys on how messages travel, which the algorithms must have."""
        objections = {"protocol": objection_to_protocol, "clear_to_send": objection_to_clear_to_send}
        for own, objection_to in objections.items():
            if getattr(self, own) is not None:
                check_way_of_messages(own, objection_to, collective, self.algorithms, fabric, key)

    def _count(self, ranks_of_fabric: int) -> int:
        """Return how many ranks take part."""
        return ranks_of_fabric if self.ranks is None else len(self.ranks)

    def named_tenants(self, key: str) -> Iterator[tuple[str, str, bool]]:
        """Yield the key of its tenant, the tenant, and whether switches may reduce."""
        may = may_reduce(self._definition(), self.algorithms or ())
        yield f"{key}.tenant", self.tenant, may

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that the fabric has the links and NICs that algorithms need."""
        if self.ranks is not None:
            check_group(self._definition(), self.algorithms or (), self.ranks, topology, self.root, key)
            return
        check_paths(self._definition(), self.algorithms, topology, key, self._lanes_for)

    def data_bytes(self, ranks: int) -> int:
        """Return the bytes of a rank's inputs."""
        if self.data != "random":
            return 0
        return sum(self._input_counts(self._sizes(), self._count(ranks))) * DataType(self.dtype).element_bytes

    def check_single(self, key: str) -> None:
        """Check that there is one algorithm, one size and one run."""
        require_one(self.algorithms or (), f"{key}.algorithms")
        if self.sizes:
            require_one(self.sizes, f"{key}.sizes")
        for name in ("repetitions", "warmup"):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise KeyProblem(
                    f"{key}.{name}", "together with other items a collective runs once", valid="leave it out"
                )

    def reduces_in_network(self, fabric: FabricSpec) -> bool:
        """Return whether an algorithm reduces in the network."""
        return any_in_network(self._definition(), self.algorithms or (), fabric)

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[CollectiveResult]]:
        """Make the inputs."""
        [inputs], [algorithm] = self._inputs(ranks, seed), list(self.algorithms or [])

        return lambda fabric: fabric.tasks.collective(self._request(inputs, algorithm, seed))

    def _request(self, inputs: int | Inputs, algorithm: str, seed: int) -> CollectiveRequest:
        """Return the request for inputs or, with lengths, a size in bytes."""
        return CollectiveRequest(
            self._definition(seed).reference,
            inputs,
            algorithm,
            dtype=self.dtype,
            operation=self.operation,
            root=self.root,
            ranks=self.ranks,
            tenant=self.tenant,
            data=self.data,
            repetitions=self.repetitions,
            warmup=self.warmup,
            protocol=self.protocol or NONE,
            clear_to_send=None if self.clear_to_send is None else self.clear_to_send.settings(),
        )

    def as_job(self, topology: FabricSpec, seed: int) -> Job | None:
        """Return collectives of all sizes, one after the other, without repetitions.

        Raises BadInputError with a protocol or clear_to_send, for which traces of jobs have no place.
        """
        require_plain_messages(self)
        calls = [
            CollectiveCall(
                self._definition(seed).reference,
                size_bytes,
                self.algorithms[0] if self.algorithms else "",
                DataType(self.dtype),
                Operation[self.operation.upper()],
                self.root,
            )
            for size_bytes in self._sizes()
        ]
        return collectives_job(self.collective, calls, self._count(topology.rank_count))

    def prepare(self, ranks: int, seed: int) -> Run:
        """Make the inputs for every size."""
        return partial(self._run, sizes=self._inputs(ranks, seed))

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Make the inputs and run."""
        self.prepare(fabric.topology.rank_count, fabric.options.seed)(fabric, progress)

    def _run(self, fabric: Fabric, progress: Progress, sizes: list[int] | list[Inputs]) -> None:
        """Run the collective for every size and algorithm; with lengths, `sizes` are bytes."""
        collective = self._definition()
        title = collective.title or collective.name
        algorithms = self.algorithms or suitable(fabric.topology, collective, progress, self._lanes_for)
        for size in sizes:
            for algorithm in algorithms:
                if isinstance(size, int):
                    progress(f"{title} of {size} B, {algorithm}, lengths only")
                else:
                    progress(f"{title} of {size[0].nbytes} B a host, {algorithm}")
                fabric.run(self._request(size, algorithm, fabric.options.seed))

    def _inputs(self, ranks: int, seed: int) -> list[int] | list[Inputs]:
        sizes = self._sizes()
        if self.data == LENGTHS:
            return sizes
        ranks = self._count(ranks)
        if self.data == "mlp-gradients":
            gradients = mlp_gradients(ranks, seed)
            dtype = DataType(self.dtype)
            if not dtype.is_float:
                # Fixed point with half of the bits after the point, as in integer reductions of gradients.
                gradients = [np.rint(each * 2 ** (4 * dtype.element_bytes)) for each in gradients]
            return [[elements_of(each, dtype) for each in gradients]]
        generator = np.random.default_rng(seed)
        dtype, counts = DataType(self.dtype), self._input_counts(sizes, ranks)
        return [[random_elements(generator, dtype, count) for _ in range(ranks)] for count in counts]

    def _input_counts(self, sizes: list[int], ranks: int) -> list[int]:
        element_bytes, collective = DataType(self.dtype).element_bytes, self._definition()
        return [collective.input_elements(size // element_bytes, ranks) for size in sizes]

    @property
    def _lanes_for(self) -> str:
        return AVERAGE_NEEDS_LANES if self.operation == Operation.AVERAGE.name.lower() else ""

    def _sizes(self) -> list[int]:
        """Return the sizes, or what stands for them."""
        own = self.pairs.given if self.pairs is not None else None
        return self.sizes or [DEFAULT_SIZE_BYTES if own is None or own.size_bytes is None else own.size_bytes]

    def _definition(self, seed: int = 0) -> Collective:
        """Return the collective; sizes of pairs that are drawn depend on the seed."""
        if self.pairs is None:
            return collective_named(self.collective)
        return collective_named(f"{self.collective}:{self.pairs.sizes(seed).parameters}")
