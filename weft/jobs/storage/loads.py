"""What clients read and write: blocks in order or at random, a checkpoint's shards, batches of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from weft.jobs.formulas.memory import model_state
from weft.jobs.formulas.parameters import rank_parameters
from weft.jobs.storage.commands import SECTOR_BYTES, Block, Commands, StorageNodes, StorageWriter
from weft.jobs.training_plan import TrainingPlan
from weft.quantities.definitions import Size, Time, number, whole
from weft.quantities.section import Section
from weft.traffic.jobs import Job

_ADDRESSES = 1 << 40
COMPUTE_STREAM = 0
MAX_COMMANDS = 500_000
"""Of all clients: some million operations."""


class Access(Section):
    """Blocks that every client reads and writes."""

    blocks: Annotated[int, whole(1, 100_000)]
    """Of each client."""
    order: Literal["sequential", "random"] = "sequential"
    """Of addresses. In sequence, a client's file is striped over nodes, devices and channels; client n begins at its
    n-th block."""
    reads: Annotated[float, number(0, 1)] = 1.0
    """Share of commands that read; the seed draws which."""


class Loading(Section):
    """Batches of samples that every client reads, each before the step that computes with it."""

    steps: Annotated[int, whole(1, 10_000)]
    """Batches."""
    samples: Annotated[int, whole(1, 100_000)]
    """Of a batch."""
    sample: Size
    """Size of each of them; samples lie at random addresses."""
    compute: Time
    """How long a step computes."""
    prefetch: Annotated[int, whole(0, 10_000)] = 1
    """Batches that may be read before they are needed: while a step computes, the next ones come in. With 0, a batch is
    read when the step before has ended."""


@dataclass(frozen=True)
class Batch:
    """Commands of a client, and the computation that follows them all, if there is one."""

    blocks: Sequence[Block]
    compute_ps: int | None = None


@dataclass(frozen=True)
class ClientLoad:
    """Batches of a client, of which up to `prefetch` are read before the computation that takes them can begin."""

    batches: Sequence[Batch]
    prefetch: int = 1


@dataclass(frozen=True)
class StorageJob:
    """A job and its commands.

    Attributes:
        job: clients are its first ranks.
        commands: of all clients.
        computations: of each client, the operations that compute, in order.
    """

    job: Job
    commands: Commands
    computations: Sequence[Sequence[int]] = field(default=())


def access_loads(access: Access, clients: int, block_bytes: int, seed: int) -> Iterator[ClientLoad]:
    """Yield what each client reads and writes."""
    for client in range(clients):
        generator = np.random.default_rng([seed, client])
        reads = (generator.random(access.blocks) < access.reads).tolist()
        numbers = range(client, client + access.blocks)
        if access.order == "random":
            numbers = generator.integers(0, _ADDRESSES, access.blocks).tolist()
        yield ClientLoad(
            [
                Batch(
                    [Block(*each) for each in zip(numbers, [block_bytes] * access.blocks, reads, strict=True)]
                )
            ]
        )


def loading_loads(loading: Loading, clients: int, block_bytes: int, seed: int) -> Iterator[ClientLoad]:
    """Yield what each client reads and computes."""
    sizes = block_sizes(loading.sample, block_bytes)
    for client in range(clients):
        generator = np.random.default_rng([seed, client])
        batches = []
        for _ in range(loading.steps):
            firsts = generator.integers(0, _ADDRESSES, loading.samples).tolist()
            blocks = [
                Block(first + place, size, True) for first in firsts for place, size in enumerate(sizes)
            ]
            batches.append(Batch(blocks, loading.compute))
        yield ClientLoad(batches, loading.prefetch)


def checkpoint_loads(plan: TrainingPlan, block_bytes: int) -> Iterator[ClientLoad]:
    """Yield what each rank of a training job writes: its shard, a file of its own."""
    for rank in range(plan.parallel.rank_count):
        sizes = block_sizes(shard_bytes(plan, rank), block_bytes)
        yield ClientLoad([Batch([Block(rank + place, size, False) for place, size in enumerate(sizes)])])


def shard_bytes(plan: TrainingPlan, rank: int) -> int:
    """Return what a rank writes of a checkpoint: weights and the optimizer's state, without gradients.

    Of what replicas have alike, the first of them writes all; what they share (ZeRO) each of them writes, as DeepSpeed
    does: weights from stage 3 on, the optimizer's state from stage 1 on (Rajbhandari et al. 2020, section 5).
    """
    parallel = plan.parallel
    dense, experts = rank_parameters(plan, parallel.place(rank).pipeline)
    weight_bytes = plan.precisions.bytes_of("weights")
    total = 0
    for parameters, group in (
        (dense, parallel.data_group(rank)),
        (experts, parallel.expert_data_group(rank)),
    ):
        state = model_state(parameters, len(group), parallel.zero, weight_bytes)
        is_first = group[0] == rank
        total += state.weights if is_first or parallel.zero >= 3 else 0
        total += state.optimizer if is_first or parallel.zero >= 1 else 0
    return total


def block_sizes(size_bytes: int, block_bytes: int) -> list[int]:
    """Return the sizes of the blocks of a file; the last one is rounded up to whole sectors."""
    whole_blocks, rest = divmod(size_bytes, block_bytes)
    return [block_bytes] * whole_blocks + ([-(-rest // SECTOR_BYTES) * SECTOR_BYTES] if rest else [])


def storage_job(name: str, loads: Sequence[ClientLoad], nodes: StorageNodes, queue_depth: int) -> StorageJob:
    """Return the job of clients with these loads, each with up to `queue_depth` commands under way.

    A client's n-th command follows the end of the one `queue_depth` before it. So the graph is static: a slot of the
    queue waits for its own command, also where another slot's has ended before.
    """
    writer = StorageWriter(len(loads), nodes)
    computations = [_add_client(writer, client, load, queue_depth) for client, load in enumerate(loads)]
    job, commands = writer.finished(name)
    return StorageJob(job, commands, computations)


def _add_client(writer: StorageWriter, client: int, load: ClientLoad, queue_depth: int) -> list[int]:
    builder = writer.builders[client]
    slots: list[tuple[int, ...]] = [()] * queue_depth
    computations: list[int] = []
    issued = 0
    for number_of_batch, batch in enumerate(load.batches):
        gate = _gate(computations, number_of_batch, load.prefetch)
        ends: list[int] = []
        for block in batch.blocks:
            slot = issued % queue_depth
            slots[slot] = writer.command(client, block, [*slots[slot], *gate.ends], gate.starts)
            ends += slots[slot]
            issued += 1
        if batch.compute_ps is not None:
            computations.append(
                builder.compute(
                    batch.compute_ps,
                    stream=COMPUTE_STREAM,
                    after=[*ends, *computations[-1:]],
                    category="compute",
                )
            )
    return computations


@dataclass(frozen=True)
class _Gate:
    """Operations whose ends, or starts, a batch's commands follow."""

    ends: Sequence[int] = ()
    starts: Sequence[int] = ()


def _gate(computations: Sequence[int], batch: int, prefetch: int) -> _Gate:
    """Return what a batch waits for: without prefetch the step before it, else that a batch before it is taken."""
    if prefetch == 0:
        return _Gate(ends=computations[-1:])
    taken = batch - prefetch
    return _Gate(starts=[computations[taken]]) if 0 <= taken < len(computations) else _Gate()
