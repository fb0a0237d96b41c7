"""Loads of storage clients: sequential or random blocks, a checkpoint that is saved or restored, batches of samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from weft.jobs.formulas.memory import model_state
from weft.jobs.formulas.parameters import rank_parameters
from weft.jobs.storage.commands import SECTOR_BYTES, Block, Commands, StorageNodes, StorageWriter
from weft.jobs.training_plan import TrainingPlan
from weft.quantities.definitions import Size, Time, number, whole
from weft.quantities.example import Example
from weft.quantities.section import Section
from weft.traffic.jobs import Job

_ADDRESSES = 1 << 40
COMPUTE_STREAM = 0
MAX_COMMANDS = 500_000
"""Most commands of all clients: some million operations."""


class Access(Section):
    """Blocks that every client reads and writes."""

    blocks: Annotated[int, whole(1, 100_000)]
    """Blocks of each client."""
    order: Literal["sequential", "random"] = "sequential"
    """Order of addresses. Sequential: a client's file is striped over nodes, devices and channels, and client n starts
    at its n-th block."""
    reads: Annotated[float, number(0, 1)] = 1.0
    """Share of commands that read; the seed draws which."""


class Loading(Section):
    """Batches of samples that every client reads, each before the step that computes with it."""

    steps: Annotated[int, whole(1, 10_000, example="4")]
    """Number of batches."""
    samples: Annotated[int, whole(1, 100_000, example="8")]
    """Samples of a batch."""
    sample: Annotated[Size, Example("150KiB")]
    """Size of a sample; samples lie at random addresses."""
    compute: Annotated[Time, Example("500us")]
    """How long a step computes."""
    prefetch: Annotated[int, whole(0, 10_000)] = 1
    """Batches that may be read ahead, while a step computes. With 0, a batch is read when the previous step has
    ended."""


@dataclass(frozen=True)
class Batch:
    """Commands of a client, and the computation that waits for all of them, if any."""

    blocks: Sequence[Block]
    compute_ps: int | None = None


@dataclass(frozen=True)
class ClientLoad:
    """Batches of a client; up to `prefetch` are read ahead of the computations that use them."""

    batches: Sequence[Batch]
    prefetch: int = 1


@dataclass(frozen=True)
class StorageJob:
    """A job and its commands.

    Attributes:
        job: the job; clients are its first ranks.
        commands: commands of all clients.
        computations: operations that compute, in order, by client.
    """

    job: Job
    commands: Commands
    computations: Sequence[Sequence[int]] = field(default=())


def access_loads(access: Access, clients: int, block_bytes: int, seed: int) -> Iterator[ClientLoad]:
    """Yield the load of each client that accesses blocks."""
    for client in range(clients):
        generator = np.random.default_rng([seed, client])
        reads = (generator.random(access.blocks) < access.reads).tolist()
        numbers = range(client, client + access.blocks)
        if access.order == "random":
            numbers = generator.integers(0, _ADDRESSES, access.blocks).tolist()
        yield ClientLoad(
            [Batch([Block(*each) for each in zip(numbers, [block_bytes] * access.blocks, reads, strict=True)])]
        )


def loading_loads(loading: Loading, clients: int, block_bytes: int, seed: int) -> Iterator[ClientLoad]:
    """Yield the load of each client that reads and computes batches."""
    sizes = block_sizes(loading.sample, block_bytes)
    for client in range(clients):
        generator = np.random.default_rng([seed, client])
        batches = []
        for _ in range(loading.steps):
            firsts = generator.integers(0, _ADDRESSES, loading.samples).tolist()
            blocks = [Block(first + place, size, True) for first in firsts for place, size in enumerate(sizes)]
            batches.append(Batch(blocks, loading.compute))
        yield ClientLoad(batches, loading.prefetch)


def saving_loads(plan: TrainingPlan, block_bytes: int, share: float) -> Iterator[ClientLoad]:
    """Yield the load of each rank of a training job that writes a share of its shard, a separate file."""
    for rank in range(plan.parallel.rank_count):
        sizes = block_sizes(shared_bytes(shard_bytes(plan, rank), share), block_bytes)
        yield ClientLoad([Batch([Block(rank + place, size, False) for place, size in enumerate(sizes)])])


def restoring_loads(plan: TrainingPlan, block_bytes: int, share: float) -> Iterator[ClientLoad]:
    """Yield the load of each rank that reads a share of its state, from the files of the ranks that wrote it."""
    for rank in range(plan.parallel.rank_count):
        blocks = [
            Block(owner + place, size, True)
            for owner, owned in restored_bytes(plan, rank).items()
            for place, size in enumerate(block_sizes(shared_bytes(owned, share), block_bytes))
        ]
        yield ClientLoad([Batch(blocks)])


def shard_bytes(plan: TrainingPlan, rank: int) -> int:
    """Return the bytes of a checkpoint that a rank writes: weights and the optimizer's state, without gradients.

    The first replica writes state that all replicas duplicate; every replica writes its part of sharded state, as in
    DeepSpeed: weights from ZeRO stage 3, the optimizer's state from stage 1 (Rajbhandari et al. 2020, section 5).
    """
    return restored_bytes(plan, rank).get(rank, 0)


def restored_bytes(plan: TrainingPlan, rank: int) -> dict[int, int]:
    """Return the bytes that a rank reads to go on from a checkpoint, by the rank that wrote them (`shard_bytes`)."""
    parallel = plan.parallel
    dense, experts = rank_parameters(plan, parallel.place(rank).pipeline)
    weight_bytes = plan.precisions.bytes_of("weights")
    found: Counter[int] = Counter()
    for parameters, group in (
        (dense, parallel.data_group(rank)),
        (experts, parallel.expert_data_group(rank)),
    ):
        state = model_state(parameters, len(group), parallel.zero, weight_bytes)
        found[rank if parallel.zero >= 3 else group[0]] += state.weights
        found[rank if parallel.zero >= 1 else group[0]] += state.optimizer
    return {owner: owned for owner, owned in found.items() if owned}


def shared_bytes(size_bytes: int, share: float) -> int:
    """Return a share of a size, rounded up."""
    return size_bytes if share == 1 else math.ceil(size_bytes * share)


def block_sizes(size_bytes: int, block_bytes: int) -> list[int]:
    """Return the sizes of a file's blocks; the last one is rounded up to whole sectors."""
    whole_blocks, rest = divmod(size_bytes, block_bytes)
    return [block_bytes] * whole_blocks + ([-(-rest // SECTOR_BYTES) * SECTOR_BYTES] if rest else [])


def storage_job(name: str, loads: Sequence[ClientLoad], nodes: StorageNodes, queue_depth: int) -> StorageJob:
    """Return the job of clients with these loads, each with up to `queue_depth` outstanding commands.

    A client's n-th command waits for command n - `queue_depth`. This keeps the graph static: a queue slot waits for its
    own previous command, even if another slot becomes free earlier.
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
    """Dependencies of a batch's commands on the ends and the starts of operations."""

    ends: Sequence[int] = ()
    starts: Sequence[int] = ()


def _gate(computations: Sequence[int], batch: int, prefetch: int) -> _Gate:
    """Return a batch's gate: without prefetch the previous step's end, else the start of the step that frees room."""
    if prefetch == 0:
        return _Gate(ends=computations[-1:])
    taken = batch - prefetch
    return _Gate(starts=[computations[taken]]) if 0 <= taken < len(computations) else _Gate()
