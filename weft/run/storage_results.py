"""Makes the result of a finished job of storage commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.jobs.storage.commands import StorageNodes
from weft.jobs.storage.loads import StorageJob
from weft.jobs.storage.timing import command_times, waiting_ps
from weft.recording.operations import operations_table
from weft.results.latencies import latencies_of
from weft.results.storage import StorageResult
from weft.run.jobs import JobRun
from weft.run.message_times import ServiceNetwork
from weft.run.storage_bounds import CommandLoad, throughput_bounds
from weft.traffic.jobs import Kind

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


def storage_result(
    storage: StorageJob, nodes: StorageNodes, queue_depth: int, fabric: Fabric, ran: JobRun
) -> StorageResult:
    """Return the result of a job's commands."""
    commands = storage.commands
    times = command_times(storage.job, commands, ran.times)
    clients = len(storage.job.parts) - nodes.count
    parts = {
        "network": times.network,
        "device queue": times.device_queue,
        "device": times.device,
        "host copy": times.host_copy,
    }
    reads = commands.is_read == 1
    return StorageResult(
        name=storage.job.name,
        clients=clients,
        storage_nodes=nodes.count,
        queue_depth=queue_depth,
        commands=len(commands),
        read_bytes=int(commands.size_bytes[reads].sum()),
        written_bytes=int(commands.size_bytes[~reads].sum()),
        time_ps=max(times.end_ps, _last_step_ps(storage, ran)),
        latency_ps=latencies_of(times.latency),
        parts_ps={name: round(float(values.mean())) for name, values in parts.items()},
        bounds_bytes_per_s=_bounds(storage, nodes, queue_depth, fabric, ran),
        compute_ps=_compute_ps(storage, clients),
        waiting_ps=round(sum(waiting_ps(storage, ran.times)) / clients),
        retransmissions=ran.retransmissions,
        records=operations_table(storage.job, ran.times),
    )


def _bounds(
    storage: StorageJob, nodes: StorageNodes, queue_depth: int, fabric: Fabric, ran: JobRun
) -> dict[str, float]:
    """Return the bounds for commands of the mean size; {} for both reads and writes, and where planes may change."""
    commands = storage.commands
    if commands.is_read.min() != commands.is_read.max() or fabric.topology.storage_failover:
        return {}
    clients = len(storage.job.parts) - nodes.count
    load = CommandLoad(
        clients,
        min(queue_depth, -(-len(commands) // clients)),
        round(float(commands.size_bytes.mean())),
        bool(commands.is_read[0]),
    )
    topology = fabric.topology
    network = ServiceNetwork(
        topology, fabric.options, ran.ranks[:clients], ran.ranks[clients:], topology.storage_planes
    )
    return throughput_bounds(load, nodes, network)


def _last_step_ps(storage: StorageJob, ran: JobRun) -> int:
    """Return when the last computation of a step ended; 0 without any."""
    ends = (int(own.finished_ps[rows[-1]]) for own, rows in zip(ran.times, storage.computations, strict=False) if rows)
    return max(ends, default=0)


def _compute_ps(storage: StorageJob, clients: int) -> int:
    """Return the mean computation time of clients' steps."""
    total = 0
    for part, rows in zip(storage.job.parts, storage.computations, strict=False):
        operations = part.operations
        assert all(operations.kind[row] == Kind.COMPUTE for row in rows)
        total += int(operations.duration_ps[list(rows)].sum())
    return round(total / clients)
