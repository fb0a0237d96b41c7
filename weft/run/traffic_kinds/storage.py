"""Storage behind the fabric: clients read and write blocks, save or restore a checkpoint, or load batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from weft.clocks.lab import Progress
from weft.jobs.models import MODELS, Transformer
from weft.jobs.parallelism import Parallelism
from weft.jobs.storage import loads
from weft.jobs.storage.commands import SECTOR_BYTES, HostCopy, StorageNodes
from weft.jobs.storage.devices import DEVICES, Device
from weft.jobs.training_plan import PlanError, Precisions, TrainingPlan
from weft.quantities.definitions import SIZE, number, whole
from weft.quantities.readable import counted, format_size
from weft.quantities.section import Section
from weft.quantities.units import PS_PER_S
from weft.results.storage import STORAGE, StorageResult
from weft.run.jobs import JobRun
from weft.run.service_ranks import FabricRank, check_service_paths, check_service_ranks, clients_of
from weft.run.storage_results import storage_result
from weft.run.task import Task
from weft.run.traffic_kinds.base import JobItem
from weft.scenario.places import KeyProblem
from weft.scenario.presets import Presets
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.jobs import Job
from weft.traffic.jobs.operations import MAX_STREAMS

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


class Checkpoint(Section):
    """A checkpoint of a model in training: weights and the optimizer's state, one file per rank."""

    model: Annotated[Transformer, Presets("model", lambda: MODELS)]
    """Model saved."""
    parallel: Parallelism = Parallelism()
    """How ranks divide it. The first replica writes state that all replicas duplicate."""
    precisions: Precisions = Precisions()
    """Number formats."""
    operation: Literal["save", "restore"] = "save"
    """`save`: each rank writes its shard. `restore`: each rank reads its state; replicas all read what one of them has
    written."""
    share: Annotated[float, number(0, 1, above=True, example="0.01")] = 1.0
    """Share of each rank's bytes that is written or read: a whole checkpoint of a large model is too long for packets.
    `weft goodput` chooses shares itself and extends the times to the whole."""

    @property
    def plan(self) -> TrainingPlan:
        """The plan of the training step. Raises PlanError."""
        # A pipeline schedule may need as many micro-batches as stages.
        return TrainingPlan(self.model, self.parallel, micro_batches=self.parallel.pipeline, precisions=self.precisions)

    @property
    def title(self) -> str:
        """The operation in words."""
        name = "checkpoint" if self.operation == "save" else "restoring a checkpoint"
        return name if self.share == 1 else f"{name} ({self.share:.4g} of it)"

    def client_loads(self, block_bytes: int) -> Iterator[loads.ClientLoad]:
        """Yield the load of each rank."""
        loads_of = loads.saving_loads if self.operation == "save" else loads.restoring_loads
        return loads_of(self.plan, block_bytes, self.share)

    def command_count(self, block_bytes: int) -> int:
        """Return the commands of all ranks."""
        plan = self.plan
        return sum(
            -(-loads.shared_bytes(owned, self.share) // block_bytes)
            for rank in range(plan.parallel.rank_count)
            for owner, owned in loads.restored_bytes(plan, rank).items()
            if self.operation == "restore" or owner == rank
        )


class StorageTraffic(JobItem):
    """Commands of clients to storage nodes by NVMe over Fabrics with RDMA. Packets carry lengths in place of data.

    Give one of `access`, `checkpoint` and `loading`.
    """

    kind = "storage"
    results = STORAGE

    storage: list[FabricRank] = Field(min_length=1)
    """The fabric's ranks that are storage nodes."""
    clients: list[FabricRank] | None = Field(None, min_length=1)
    """The fabric's ranks that are clients; by default all others, or as many as a checkpoint has ranks."""
    device: Annotated[Device, Presets("device", lambda: DEVICES)] = DEVICES["9550"]
    """Model of the storage devices."""
    devices: Annotated[int, whole(1, 64)] = 1
    """Devices of each node; files are striped over nodes and devices."""
    block: Annotated[int, SIZE.between(SECTOR_BYTES, 64 * 2**20, example="128KiB")] = 128 * 1024
    """Size of a command's block, a multiple of 512 B."""
    queue_depth: Annotated[int, whole(1, 65_535)] = 32
    """Outstanding commands of a client."""
    in_capsule_data: Annotated[int, SIZE.between(0, 16 * 1024, example="4KiB")] = 4096
    """The largest write that carries its data in the command capsule; the node reads larger ones from the client's
    memory. Linux's target takes 4 KiB by default, and up to 16 KiB (drivers/nvme/target/rdma.c)."""
    host_copy: HostCopy | None = None
    """Copies between host and accelerator memory; without it the network accesses accelerator memory (GPUDirect)."""
    access: loads.Access | None = None
    """Clients access blocks in order or at random."""
    checkpoint: Checkpoint | None = None
    """Each rank of a training job writes its shard, or reads its state."""
    loading: loads.Loading | None = None
    """Clients read batches of samples, each before the step that computes with it."""
    timeout: Annotated[int, whole(1, 10**6)] = 3600
    """Seconds, real or of the virtual clock, after which the run fails, in addition to steps and device times."""

    @property
    def copies_key(self) -> str:
        """The key of clients' copies, if they make some."""
        return "host_copy" if self.host_copy is not None else ""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that there is one load, the number of commands, and that ranks exist and are distinct."""
        self._check_load(key)
        if self.block % SECTOR_BYTES:
            raise KeyProblem(f"{key}.block", f"{self.block} B", valid=f"a multiple of {SECTOR_BYTES}")
        streams = self.devices * (self.device.read.channels + self.device.write.channels + 2)
        if streams > MAX_STREAMS:
            raise KeyProblem(
                f"{key}.devices",
                f"{self.devices} devices with {streams} channels and interfaces",
                valid=f"{MAX_STREAMS} of a node",
            )
        clients = check_service_ranks(fabric, self.storage, self.clients, self._client_count(key), key, "storage")
        if (commands := self._command_count(clients)) > loads.MAX_COMMANDS:
            load = "access" if self.access else "checkpoint" if self.checkpoint else "loading"
            raise KeyProblem(
                f"{key}.{load}",
                f"{commands:,} commands of {counted(clients, 'client')}",
                valid=f"up to {loads.MAX_COMMANDS:,}" + (": a smaller `share`" if self.checkpoint else ""),
            )

        self.check_kinds(self._kinds, key)

    def posted_operations(self, key: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield READs only if writes do not fit in capsules."""
        yield key, (*self.operations, "READ") if self._node_reads else self.operations

    @property
    def _kinds(self) -> tuple[str, ...]:
        """Kinds of its traffic; `write` only if data do not fit in capsules."""
        data = {"read": self._reads, "write": self._node_reads}
        return ("command", *(name for name, travels in data.items() if travels), "response")

    @property
    def _reads(self) -> bool:
        if self.checkpoint is not None:
            return self.checkpoint.operation == "restore"
        return self.loading is not None or (self.access is not None and self.access.reads > 0)

    @property
    def _node_reads(self) -> bool:
        """Whether nodes read clients' memory, for writes that do not fit in capsules."""
        saves = self.checkpoint is not None and self.checkpoint.operation == "save"
        writes = saves or (self.access is not None and self.access.reads < 1)
        return writes and self.block > self.in_capsule_data

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that clients reach all nodes."""
        clients = self._ranks(topology)[: -len(self.storage)]
        check_service_paths(topology, clients, self.storage, key, topology.storage_planes)
        if not topology.storage_failover:
            return
        if topology.scale_up is not None and topology.scale_up.relay == "rails":
            raise KeyProblem(
                "fabric.storage_network.failover",
                "in the planes, messages that change rails are relayed (fabric.scale_up.relay)",
                valid="relay: unreachable or off, or no failover",
            )
        try:
            check_service_paths(topology, clients, self.storage, key)
        except KeyProblem as problem:
            where = "fabric.storage_network.failover"
            raise KeyProblem(where, f"in the planes {problem.problem}", valid="no failover") from None

    def _check_load(self, key: str) -> None:
        given = [name for name in ("access", "checkpoint", "loading") if getattr(self, name) is not None]
        if len(given) != 1:
            raise KeyProblem(key, f"needs exactly one of access, checkpoint, loading; has {', '.join(given) or 'none'}")

    def _client_count(self, key: str) -> int | None:
        """Return the required number of clients, None for any."""
        if self.checkpoint is None:
            return None
        try:
            return self.checkpoint.plan.parallel.rank_count
        except PlanError as problem:
            raise KeyProblem(f"{key}.checkpoint.{problem.key}", problem) from None

    def _command_count(self, clients: int) -> int:
        if self.access is not None:
            return clients * self.access.blocks
        if self.loading is not None:
            blocks = -(-self.loading.sample // self.block)
            return clients * self.loading.steps * self.loading.samples * blocks
        assert self.checkpoint is not None
        return self.checkpoint.command_count(self.block)

    @property
    def _nodes(self) -> StorageNodes:
        return StorageNodes(len(self.storage), self.devices, self.device, self.in_capsule_data, self.host_copy)

    @property
    def title(self) -> str:
        """The load, in words."""
        block = format_size(self.block)
        if self.access is not None:
            doing = {0.0: "writes", 1.0: "reads"}.get(self.access.reads, "reads and writes")
            return f"{self.access.order} {doing} of {block}"
        if self.loading is not None:
            return f"loading batches of {self.loading.samples} samples of {format_size(self.loading.sample)}"
        assert self.checkpoint is not None
        return f"{self.checkpoint.title} in blocks of {block}"

    def _ranks(self, topology: FabricSpec) -> list[int]:
        """Return the fabric's rank of each rank of the job: clients, then storage nodes."""
        count = self._client_count("") if self.checkpoint else None
        return [*clients_of(topology.rank_count, self.storage, self.clients, count), *self.storage]

    def made(self, topology: FabricSpec, seed: int) -> loads.StorageJob:
        """Return the job and its commands."""
        clients = len(self._ranks(topology)) - len(self.storage)
        return loads.storage_job(self.title, list(self._loads(clients, seed)), self._nodes, self.queue_depth)

    def _loads(self, clients: int, seed: int) -> list[loads.ClientLoad]:
        if self.access is not None:
            return list(loads.access_loads(self.access, clients, self.block, seed))
        if self.loading is not None:
            return list(loads.loading_loads(self.loading, clients, self.block, seed))
        assert self.checkpoint is not None
        return list(self.checkpoint.client_loads(self.block))

    def as_job(self, topology: FabricSpec, seed: int) -> Job | None:
        """Return the job."""
        return self.with_classes(self.made(topology, seed).job)

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[StorageResult]]:
        """Return a function that makes the task; there is no data to prepare."""
        return self._task

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run all commands."""
        progress(f"storage: {self.title}")
        fabric.run_together([self._task(fabric)], self.time_limit_s(fabric))

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return `timeout` plus the time of steps, and of devices and copies for all commands in sequence."""
        steps_ps = self.loading.steps * self.loading.compute if self.loading else 0
        commands = self._command_count(len(self._ranks(fabric.topology)) - len(self.storage))
        kinds = (self.device.read, self.device.write)
        command_ps = max(each.latency + each.transfer_ps(self.block) for each in kinds)
        if self.host_copy is not None:
            command_ps += self.host_copy.duration_ps(self.block)
        return self.timeout + (steps_ps + commands * command_ps) / PS_PER_S * fabric.options.dilation

    def _task(self, fabric: Fabric) -> Task[StorageResult]:
        ranks = self._ranks(fabric.topology)
        made = self.made(fabric.topology, fabric.options.seed)
        result: Callable[[JobRun], StorageResult] = partial(storage_result, made, self._nodes, self.queue_depth, fabric)
        return fabric.tasks.job(self.with_classes(made.job), ranks, storage=True).noted(STORAGE, result)
