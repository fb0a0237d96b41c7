"""NCCL's model of the time that a collective takes, by which it chooses algorithm and protocol.

Tables, corrections and the choice follow NCCL 2.30.7: `ncclTopoTuneModel` and `ncclTopoGetAlgoTime` in
src/graph/tuning.cc, `updateCollCostTable`, `topoGetAlgoInfo` and `scheduleCollTasksToPlan` in src/enqueue.cc
(https://github.com/NVIDIA/nccl/tree/v2.30.7-1). NCCL's algorithms are rings, trees, PAT, NVLS within a node, and
NVLSTree over several. CollNet, and with it NVLS over several nodes, is off, as in NCCL unless NCCL_COLLNET_ENABLE is
set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.errors import InvalidValueError
from weft.traffic.aggregation_format import Operation
from weft.traffic.data_types import DataType
from weft.traffic.nccl.cluster import Cluster, Graph
from weft.traffic.protocols import LL, LL128, SIMPLE

NCCL_VERSION = "2.30.7"
TREE, RING, NVLS, NVLS_TREE, PAT = "tree", "ring", "nvls", "nvls-tree", "pat"
_ORDER = (TREE, RING, NVLS, NVLS_TREE, PAT)
"""NCCL's order, in which the first of equal times wins."""
_BY_SWITCHES = (NVLS, NVLS_TREE)
_PROTOCOLS = (LL, LL128, SIMPLE)
FUNCTIONS: Mapping[str, str] = {
    "allreduce": "AllReduce",
    "allgather": "AllGather",
    "reducescatter": "ReduceScatter",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
}
"""Collectives for which NCCL chooses, by Weft's names."""
_ALGORITHMS = {
    "allreduce": (TREE, RING, NVLS, NVLS_TREE),
    "allgather": (RING, NVLS, PAT),
    "reducescatter": (RING, NVLS, PAT),
    "broadcast": (RING,),
    "reduce": (RING,),
}
_TYPES_OF_SWITCHES = {DataType.INT32, DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32}
"""ncclNvlsSupported in src/include/device.h."""

# Microseconds, by protocol in the order of _PROTOCOLS.
_BASE_LATENCIES = {
    TREE: (6.8, 14.0, 8.4),
    RING: (6.6, 14.0, 8.4),
    NVLS: (0, 0, 0),
    NVLS_TREE: (0, 0, 0),
    PAT: (8.0, 8.0, 8.0),
}
_NVLINK, _PCI, _NET = "nvlink", "pci", "net"
_LATENCIES = {
    _NVLINK: {
        **{TREE: (0.6, 1.25, 4.0), RING: (0.6, 1.9, 3.4)},
        **{NVLS: (0, 0, 25), NVLS_TREE: (0, 0, 25), PAT: (0, 0, 4.0)},
    },
    _PCI: {
        **{TREE: (1.0, 1.9, 4.0), RING: (1.0, 2.5, 5.7)},
        **{NVLS: (0, 0, 0), NVLS_TREE: (0, 0, 0), PAT: (0, 0, 4.0)},
    },
    _NET: {
        **{TREE: (5.0, 8.5, 14.0), RING: (2.7, 4.0, 14.0)},
        **{NVLS: (0, 0, 18), NVLS_TREE: (0, 0, 20.9), PAT: (0, 0, 14)},
    },
}
# GB/s, for 1, 2, and more nodes.
_LL_BY_CPU = {"intel": (39.0, 39.0, 20.4), "amd": (87.7, 22.5, 19.0)}
_LL_BY_GPU = {"volta": 39.0, "ampere": 87.7, "hopper": 141.0, "blackwell": 282.0}
_RING_LL128 = {"volta": (20.0,) * 3, "ampere": (20.0,) * 3, "hopper": (36.7,) * 3, "blackwell": (40.0,) * 3}
_TREE_LL128 = {
    "volta": (20.0,) * 3,
    "ampere": (20.0,) * 3,
    "hopper": (36.7, 36.7, 29.0),
    "blackwell": (55.6, 31.67, 20.0),
}
_TREE = {
    "volta": (26.5, 18.5, 10.0),
    "ampere": (24.0, 23.6, 17.8),
    "hopper": (38.7, 41.4, 36.0),
    "blackwell": (70.0, 42.8, 24.0),
}
_NVLS_TREE = {
    "volta": (26.5, 18.5, 10.0),
    "ampere": (24.0, 23.6, 17.8),
    "hopper": (0.0, 57.7, 45.5),
    "blackwell": (0.0, 96.0, 80.0),
}
_NVLS_EFFICIENCY = {"volta": 0.0, "ampere": 0.0, "hopper": 0.85, "blackwell": 0.74}
_NET_OVERHEAD = {"intel": 1.0, "amd": 2.0}
_TREE_CORRECTION = {
    LL: (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1),
    LL128: (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1),
    SIMPLE: (
        *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5),
        *(0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
    ),
}
"""Factors of a tree's bandwidth, by powers of two from 64 B."""
_MIN_TRAFFIC = 32 << 10
_THREADS = {LL: 512, LL128: 640, SIMPLE: 512}
_THRESHOLDS = {LL: 8, LL128: 8, SIMPLE: 64}

Times = Mapping[tuple[str, str], float]
"""Microseconds by algorithm and protocol."""


@dataclass(frozen=True)
class NcclChoice:
    """NCCL's choice, and the time that it predicts."""

    algorithm: str
    """Weft's name of the algorithm: `ring`, `tree`, `pat`, `nvls` or `nvls-tree`."""
    protocol: str
    """NCCL's protocol: `simple`, `ll` or `ll128`. Messages travel in it unless switches reduce."""
    channels: int
    """Channels that NCCL would use; Weft's algorithms use all NICs and know no channels."""
    predicted_ps: int
    """Time that NCCL's model predicts."""
    log: str
    """The line that NCCL prints with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=TUNING."""
    version: str = NCCL_VERSION
    """NCCL's version that has this model."""


def objection_to_elements(operation: Operation, dtype: DataType) -> str:
    """Return why NCCL cannot combine elements so and what is valid, "" if it can."""
    if operation.is_bitwise or dtype is DataType.INT16:
        return f"NCCL has no {operation.name.lower()} of {dtype} (valid: sum, average, max, min; all types but int16)"
    return ""


def nccl_times(
    cluster: Cluster, collective: str, size_bytes: int, operation: Operation, dtype: DataType
) -> dict[tuple[str, str], float]:
    """Return the microseconds that NCCL predicts for each algorithm and protocol that it may take.

    Args:
        cluster: the ranks and their nodes.
        collective: a key of `FUNCTIONS`.
        size_bytes: nccl-tests' size.
        operation: reduces the elements.
        dtype: type of the elements.

    Raises:
        ValueError: NCCL has no choice for the collective.
    """
    if collective not in FUNCTIONS:
        raise InvalidValueError(f"NCCL's model does not choose for {collective}", valid=FUNCTIONS)
    if problem := objection_to_elements(operation, dtype):
        raise ValueError(problem)
    if cluster.ranks == 1:
        return {(RING, SIMPLE): 0.0}
    found = {}
    for algorithm in (each for each in _ORDER if each in _ALGORITHMS[collective]):
        for protocol in _PROTOCOLS:
            bandwidth = _bandwidth(cluster, collective, algorithm, protocol, operation, dtype)
            if bandwidth > 0:
                latency = _latency(cluster, collective, algorithm, protocol)
                found[algorithm, protocol] = _time(
                    cluster, collective, algorithm, protocol, size_bytes, latency, bandwidth
                )
    return found


def nccl_choice(
    cluster: Cluster,
    collective: str,
    size_bytes: int,
    count_bytes: int,
    operation: Operation,
    dtype: DataType,
    protocol: str = "",
) -> NcclChoice:
    """Return what NCCL takes: the shortest of `nccl_times`.

    Args:
        cluster, collective, size_bytes, operation, dtype: as of `nccl_times`.
        count_bytes: NCCL's count, in bytes, for the log.
        protocol: the only one to choose from, as NCCL_PROTO; "" for all.

    Raises:
        ValueError: NCCL has no choice for the collective, or none with this protocol.
    """
    times = nccl_times(cluster, collective, size_bytes, operation, dtype)
    allowed = {key: time for key, time in times.items() if protocol in ("", key[1])}
    if not allowed:
        raise InvalidValueError(
            f"no algorithm of NCCL for {collective} has protocol {protocol}",
            valid=dict.fromkeys(key[1] for key in times),
        )
    algorithm, chosen = min(allowed, key=lambda key: allowed[key])
    most = _most_channels(cluster, algorithm, chosen, size_bytes)
    channels = _used_channels(cluster, collective, algorithm, chosen, count_bytes, most)
    return NcclChoice(
        algorithm,
        chosen,
        channels,
        round(allowed[algorithm, chosen] * 1_000_000),
        f"{FUNCTIONS[collective]}: {count_bytes} Bytes -> Algo {_logged(algorithm)} proto {chosen.upper()} "
        f"channel{{Lo..Hi}}={{0..{channels - 1}}}",
    )


def _steps(cluster: Cluster, collective: str) -> int:
    ranks = cluster.ranks
    return {"allreduce": 2 * (ranks - 1), "allgather": ranks - 1, "reducescatter": ranks - 1}.get(collective, ranks)


def _graph(cluster: Cluster, algorithm: str) -> Graph:
    if algorithm in _BY_SWITCHES:
        return cluster.nvls()
    return cluster.tree() if algorithm in (TREE, PAT) else cluster.ring()


def _bandwidth(
    cluster: Cluster, collective: str, algorithm: str, protocol: str, operation: Operation, dtype: DataType
) -> float:
    """Return GB/s of a collective's size; 0 for what NCCL does not take."""
    graph, nodes, ranks = _graph(cluster, algorithm), cluster.nodes, cluster.ranks
    gpu, column = cluster.settings.accelerator, min(nodes, 3) - 1
    ratio = ranks / _steps(cluster, collective)
    bus = graph.channels * (graph.intra if nodes <= 2 else graph.inter)
    if algorithm == RING:
        if protocol == LL:
            bus = min(_ll_most(cluster), bus * 0.5)
        elif protocol == LL128:
            bus = min(bus * 0.92, graph.channels * _RING_LL128[gpu][column])
        return bus * ratio
    if algorithm == TREE:
        bus = min(bus * 0.92, graph.channels * _TREE[gpu][column])
        if protocol == LL:
            bus = min(bus / 3.8, _ll_most(cluster))
        elif protocol == LL128:
            share = 7 / 9 if nodes == 1 else 120 / 128
            bus = min(bus * share, graph.channels * _TREE_LL128[gpu][column])
        # Of a node with one rank all trees are plain.
        return 0.5 * bus * (0.85 if ranks == nodes else 1.0)
    if protocol != SIMPLE:
        return 0.0
    if algorithm == PAT:
        averages = collective == "reducescatter" and operation is Operation.AVERAGE
        return 0.0 if ranks != nodes or averages else bus * 0.75
    if graph.channels < 2 or not _switches_reduce(collective, operation, dtype):
        return 0.0
    if (nodes == 1) is not (algorithm == NVLS) or (collective != "allreduce" and ranks > 32):
        return 0.0
    per_channel = graph.intra * _NVLS_EFFICIENCY[gpu] * (graph.channels - 1) / graph.channels
    if algorithm == NVLS_TREE:
        of_nics = graph.inter * (2 if nodes == 2 else 1)
        return graph.channels * min(2 * per_channel, of_nics, _NVLS_TREE[gpu][column]) * ratio
    if collective == "allreduce":
        return graph.channels * per_channel * 2 * ratio
    return graph.channels * per_channel * (ranks - 1) / ranks


def _switches_reduce(collective: str, operation: Operation, dtype: DataType) -> bool:
    if collective == "allgather":
        return True
    is_sum = operation in (Operation.SUM, Operation.AVERAGE)
    is_extreme = operation in (Operation.MAX, Operation.MIN) and dtype is not DataType.FLOAT32
    return dtype in _TYPES_OF_SWITCHES and (is_sum or is_extreme)


def _ll_most(cluster: Cluster) -> float:
    if cluster.nodes == 1:
        return _LL_BY_GPU[cluster.settings.accelerator]
    return _LL_BY_CPU[cluster.settings.cpu][min(cluster.nodes, 3) - 1]


def _latency(cluster: Cluster, collective: str, algorithm: str, protocol: str) -> float:
    place, nodes, ranks = _PROTOCOLS.index(protocol), cluster.nodes, cluster.ranks
    inside = _NVLINK if cluster.scale_up_bps is not None and ranks > nodes else _PCI
    intra = _LATENCIES[inside][algorithm][place]
    inter = _LATENCIES[_NET][TREE if ranks == nodes else algorithm][place]
    base = _BASE_LATENCIES[algorithm][place]
    hops = nodes.bit_length() - 1
    if algorithm == TREE:
        return base + 2 * ((ranks // nodes - 1) * intra + hops * inter)
    if algorithm == NVLS:
        return intra
    if algorithm == NVLS_TREE:
        return base + intra + 2 * hops * inter
    if algorithm == PAT:
        return base + hops * inter / 3.5 + ranks * 2.8
    steps = _steps(cluster, collective)
    if collective in ("broadcast", "reduce"):
        where = inside if nodes == 1 else _NET
        if cluster.rings_share_an_order:
            return base + _LATENCIES[where][RING][place]
        return base + steps * _LATENCIES[where][TREE if protocol == SIMPLE else RING][place]
    overhead = 0.0
    if nodes > 1:
        overhead = _NET_OVERHEAD[cluster.settings.cpu] * (3 if protocol == SIMPLE else 1)
    between = 0 if nodes == 1 else (2 if collective == "allreduce" else 1) * (nodes - 1)
    return base + (steps - between) * max(intra, overhead) + between * inter


def _time(
    cluster: Cluster,
    collective: str,
    algorithm: str,
    protocol: str,
    size_bytes: int,
    latency: float,
    bandwidth: float,
) -> float:
    power = (size_bytes >> 6).bit_length() - 1
    corrections = _TREE_CORRECTION[protocol]
    if algorithm == TREE and 0 <= power < len(corrections):
        bandwidth *= corrections[power]
    if algorithm == NVLS_TREE and cluster.capability >= 100 and 0 <= power <= len(corrections):
        # Of powers up to 23, with the last factor twice; all CPUs here are x86.
        bandwidth *= (*corrections, corrections[-1])[power]
    plateau = algorithm == RING and protocol == SIMPLE and cluster.nodes > 1 and collective == "allreduce"
    if plateau and size_bytes // (cluster.channels * cluster.ranks) >= 64:
        latency *= 1.9 if cluster.capability < 80 else 1.4
    return latency + size_bytes / (1000 * bandwidth)


def _most_channels(cluster: Cluster, algorithm: str, protocol: str, size_bytes: int) -> int:
    """Return the channels for a size, each with enough for its threads."""
    if algorithm in _BY_SWITCHES:
        return cluster.nvls_channels
    channels, threads, threshold = cluster.channels, _THREADS[protocol], _THRESHOLDS[protocol]
    if algorithm == PAT:
        threads = 0  # no limit of threads is set for it
    elif algorithm == RING and protocol == LL:
        threshold *= cluster.ranks
    if algorithm == RING and protocol == SIMPLE:
        ring = cluster.ring()
        threads = 256 if ring.intra * ring.channels <= 12.0 else threads
    while channels >= 2 and size_bytes < channels * threads * threshold:
        channels -= 1
    return channels


def _used_channels(
    cluster: Cluster, collective: str, algorithm: str, protocol: str, count_bytes: int, most: int
) -> int:
    """Return how many channels a single collective occupies; its bytes are shared out in cells."""
    per_byte = {"allreduce": 2, "allgather": cluster.ranks, "reducescatter": cluster.ranks}.get(collective, 1)
    if protocol == LL:
        per_byte *= 4
    traffic = max(_MIN_TRAFFIC, count_bytes * per_byte)
    limit = cluster.nvls_channels if algorithm in _BY_SWITCHES else cluster.channels
    of_channel = _divided_up(traffic // min(most, limit), 16) * 16
    cell_bytes = _divided_up(_divided_up(_MIN_TRAFFIC, per_byte), 16) * 16
    cells = _divided_up(count_bytes, cell_bytes)
    each = min(cells, _divided_up(of_channel, cell_bytes * per_byte))
    return min(limit, _divided_up(cells, each)) if each else 1


def _logged(algorithm: str) -> str:
    return algorithm.upper().replace("-", "_")


def _divided_up(number: int, parts: int) -> int:
    return -(-number // parts)
