"""Storage behind the fabric: clients read and write blocks, write a checkpoint, or load batches of samples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from weft.clocks.lab import Progress
from weft.jobs.models import MODELS, Transformer
from weft.jobs.parallelism import Parallelism
from weft.jobs.storage.commands import SECTOR_BYTES, HostCopy, StorageNodes
from weft.jobs.storage.devices import DEVICES, Device
from weft.jobs.storage.loads import (
    MAX_COMMANDS,
    Access,
    ClientLoad,
    Loading,
    StorageJob,
    access_loads,
    checkpoint_loads,
    loading_loads,
    shard_bytes,
    storage_job,
)
from weft.jobs.training_plan import PlanError, Precisions, TrainingPlan
from weft.quantities.definitions import SIZE, whole
from weft.quantities.readable import counted, format_size
from weft.quantities.section import Section
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
    """Of a model in training: weights and the optimizer's state, a file of each rank."""

    model: Annotated[Transformer, Presets("model", lambda: MODELS)]
    """What is saved."""
    parallel: Parallelism = Parallelism()
    """How ranks share it. What replicas have alike, the first one writes."""
    precisions: Precisions = Precisions()
    """Of elements."""

    @property
    def plan(self) -> TrainingPlan:
        """Return the training job. Raises PlanError."""
        # A pipeline's schedule may need as many micro-batches as stages.
        return TrainingPlan(
            self.model, self.parallel, micro_batches=self.parallel.pipeline, precisions=self.precisions
        )


class StorageTraffic(JobItem):
    """Commands of clients to storage nodes, as NVMe over Fabrics with RDMA. Packets carry lengths in place of data.

    One of `access`, `checkpoint` and `loading` says what clients do.
    """

    kind = "storage"
    results = STORAGE

    storage: list[FabricRank] = Field(min_length=1)
    """The fabric's ranks that are storage nodes."""
    clients: list[FabricRank] | None = Field(None, min_length=1)
    """The fabric's ranks that are clients; by default all others, of a checkpoint as many of them as it has ranks."""
    device: Annotated[Device, Presets("device", lambda: DEVICES)] = DEVICES["9550"]
    """Of which a node has `devices`."""
    devices: Annotated[int, whole(1, 64)] = 1
    """Of each node; files are striped over nodes and devices."""
    block: Annotated[int, SIZE.between(SECTOR_BYTES, 64 * 2**20, example="128KiB")] = 128 * 1024
    """Of a command; a multiple of 512 B."""
    queue_depth: Annotated[int, whole(1, 65_535)] = 32
    """Commands that a client keeps under way."""
    in_capsule_data: Annotated[int, SIZE.between(0, 16 * 1024, example="4KiB")] = 4096
    """The largest write whose data travel within the command's capsule; the node reads others from the client's memory.
    Linux's target takes 4 KiB by default, and up to 16 KiB (drivers/nvme/target/rdma.c)."""
    host_copy: HostCopy | None = None
    """Copies between host memory and accelerator; without, the network works on the accelerator's memory (GPUDirect)"""
    access: Access | None = None
    """Blocks in order, or at random."""
    checkpoint: Checkpoint | None = None
    """Every rank of a training job writes its shard."""
    loading: Loading | None = None
    """Batches of samples, each read before a step that computes."""
    timeout: Annotated[int, whole(1, 10**6)] = 3600
    """Seconds after which the run fails, beyond what steps and devices take: real ones, or of the virtual clock."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that there is one load, of not too many commands, and that its ranks exist and are distinct."""
        self._check_load(key)
        if self.block % SECTOR_BYTES:
            raise KeyProblem(f"{key}.block", f"{self.block} B (valid: a multiple of {SECTOR_BYTES})")
        streams = self.devices * (self.device.read.channels + self.device.write.channels + 2)
        if streams > MAX_STREAMS:
            raise KeyProblem(
                f"{key}.devices",
                f"{self.devices} devices with {streams} channels and interfaces (valid: {MAX_STREAMS} of a node)",
            )
        clients = check_service_ranks(
            fabric, self.storage, self.clients, self._client_count(key), key, "storage"
        )
        if (commands := self._command_count(clients)) > MAX_COMMANDS:
            load = "access" if self.access else "checkpoint" if self.checkpoint else "loading"
            raise KeyProblem(
                f"{key}.{load}",
                f"{commands:,} commands of {counted(clients, 'client')} (valid: up to {MAX_COMMANDS:,})",
            )

        self.check_kinds(self._kinds, key)

    @property
    def _kinds(self) -> tuple[str, ...]:
        """Kinds of what travels: of reads, and of writes whose data are not in capsules."""
        data = {"read": self._reads, "write": self._node_reads}
        return ("command", *(name for name, travels in data.items() if travels), "response")

    @property
    def _reads(self) -> bool:
        return self.loading is not None or (self.access is not None and self.access.reads > 0)

    @property
    def _node_reads(self) -> bool:
        """Whether nodes read clients' memory, for writes that do not fit capsules."""
        writes = self.checkpoint is not None or (self.access is not None and self.access.reads < 1)
        return writes and self.block > self.in_capsule_data

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that clients reach all nodes, and these read clients' memory over the network."""
        clients = self._ranks(topology)[: -len(self.storage)]
        check_service_paths(topology, clients, self.storage, key, by_reads=self._node_reads)

    def _check_load(self, key: str) -> None:
        given = [name for name in ("access", "checkpoint", "loading") if getattr(self, name) is not None]
        if len(given) != 1:
            raise KeyProblem(
                key, f"needs exactly one of access, checkpoint, loading; has {', '.join(given) or 'none'}"
            )

    def _client_count(self, key: str) -> int | None:
        """Return how many clients there must be, None for any."""
        if self.checkpoint is None:
            return None
        try:
            return self.checkpoint.plan.parallel.rank_count
        except PlanError as problem:
            raise KeyProblem(f"{key}.checkpoint.{problem.key}", str(problem)) from None

    def _command_count(self, clients: int) -> int:
        if self.access is not None:
            return clients * self.access.blocks
        if self.loading is not None:
            blocks = -(-self.loading.sample // self.block)
            return clients * self.loading.steps * self.loading.samples * blocks
        assert self.checkpoint is not None
        plan = self.checkpoint.plan
        return sum(-(-shard_bytes(plan, rank) // self.block) for rank in range(clients))

    @property
    def _nodes(self) -> StorageNodes:
        return StorageNodes(
            len(self.storage), self.devices, self.device, self.in_capsule_data, self.host_copy
        )

    @property
    def title(self) -> str:
        """What clients do, in words."""
        block = format_size(self.block)
        if self.access is not None:
            doing = {0.0: "writes", 1.0: "reads"}.get(self.access.reads, "reads and writes")
            return f"{self.access.order} {doing} of {block}"
        if self.loading is not None:
            return f"loading batches of {self.loading.samples} samples of {format_size(self.loading.sample)}"
        return f"checkpoint in blocks of {block}"

    def _ranks(self, topology: FabricSpec) -> list[int]:
        """Return the fabric's ranks of the job's: clients, then storage nodes."""
        count = self._client_count("") if self.checkpoint else None
        return [*clients_of(topology.rank_count, self.storage, self.clients, count), *self.storage]

    def made(self, topology: FabricSpec, seed: int) -> StorageJob:
        """Return the job and its commands."""
        clients = len(self._ranks(topology)) - len(self.storage)
        return storage_job(self.title, list(self._loads(clients, seed)), self._nodes, self.queue_depth)

    def _loads(self, clients: int, seed: int) -> list[ClientLoad]:
        if self.access is not None:
            return list(access_loads(self.access, clients, self.block, seed))
        if self.loading is not None:
            return list(loading_loads(self.loading, clients, self.block, seed))
        assert self.checkpoint is not None
        return list(checkpoint_loads(self.checkpoint.plan, self.block))

    def as_job(self, topology: FabricSpec, seed: int) -> Job | None:
        """Return the job."""
        return self.with_classes(self.made(topology, seed).job)

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[StorageResult]]:
        """There are no data to make."""
        return self._task

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run all commands."""
        progress(f"storage: {self.title}")
        fabric.run_together([self._task(fabric)], self.time_limit_s(fabric))

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return `timeout`, beyond what steps compute, and devices and copies take for commands one after the other."""
        steps_ps = self.loading.steps * self.loading.compute if self.loading else 0
        commands = self._command_count(len(self._ranks(fabric.topology)) - len(self.storage))
        kinds = (self.device.read, self.device.write)
        command_ps = max(each.latency + each.transfer_ps(self.block) for each in kinds)
        if self.host_copy is not None:
            command_ps += self.host_copy.duration_ps(self.block)
        return self.timeout + (steps_ps + commands * command_ps) / 10**12 * fabric.options.dilation

    def _task(self, fabric: Fabric) -> Task[StorageResult]:
        ranks = self._ranks(fabric.topology)
        made = self.made(fabric.topology, fabric.options.seed)
        result: Callable[[JobRun], StorageResult] = partial(
            storage_result, made, self._nodes, self.queue_depth, fabric
        )
        return fabric.tasks.job(self.with_classes(made.job), ranks).noted(STORAGE, result)
