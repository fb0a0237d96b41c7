"""The algorithm and the protocol that NCCL would choose on a fabric."""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import BadInputError, translated
from weft.scenario import FabricOptions
from weft.topologies import FabricSpec
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import NCCL, Collective
from weft.traffic.data_types import DataType
from weft.traffic.nccl import Cluster, NcclChoice, NcclSettings, nccl_choice
from weft.traffic.nccl.model import FUNCTIONS, objection_to_elements
from weft.traffic.protocols import AUTO_PROTOCOL, NONE
from weft.traffic.schedules import CollectiveSpec


def objection_to_nccl(
    collective: Collective, operation: Operation = Operation.SUM, dtype: DataType = DataType.FLOAT32
) -> str:
    """Return why NCCL has no choice for a collective of such elements and what is valid, "" if it has one."""
    if collective.name in FUNCTIONS:
        return objection_to_elements(operation, dtype)
    if collective.name in ("alltoall", "alltoallv", "gather", "scatter"):
        return f"{NCCL} has one way for {collective.name}, sends and receives in a group (valid: direct)"
    return f"{NCCL} does not choose for {collective.name} (valid: it does for {', '.join(FUNCTIONS)})"


def cluster_of(topology: FabricSpec, settings: NcclSettings, ranks: Sequence[int] | None = None) -> Cluster:
    """Return a fabric as NCCL's model sees it: all of its ranks, or some."""
    count = topology.rank_count if ranks is None else len(ranks)
    nics = tuple(nic.link.rate_bps for nic in topology.hosts[0].nics[: topology.training_nics])
    if topology.is_scale_up:
        return Cluster(count, 1, (), sum(nics), has_switch=True, settings=settings)
    scale_up = topology.scale_up
    if scale_up is None:
        return Cluster(count, count, nics, settings=settings)
    hosts = list(scale_up.hosts(topology.rank_count))
    if ranks is not None:
        chosen = set(ranks)
        hosts = [found for host in hosts if (found := tuple(rank for rank in host if rank in chosen))]
    # NCCL takes the least of all nodes' channels.
    fewest = min(map(len, hosts))
    # Its switches join ranks over several hosts only if each host has as many.
    has_switch = scale_up.reductions and max(map(len, hosts)) == fewest
    return Cluster(count, len(hosts), nics * fewest, scale_up.rate_bps, has_switch, settings)


def chosen_by_nccl(
    collective: Collective,
    spec: CollectiveSpec,
    topology: FabricSpec,
    options: FabricOptions,
    protocol: str = NONE,
    ranks: Sequence[int] | None = None,
) -> NcclChoice:
    """Return NCCL's choice for a collective.

    Args:
        collective: what runs.
        spec: with how much data.
        topology, options: of the fabric.
        protocol: as NCCL_PROTO, the only one to choose from; none and `auto` for all.
        ranks: the fabric's ranks that take part; None: all.

    Raises:
        BadInputError: NCCL has no choice, or none with this protocol.
    """
    if objection := objection_to_nccl(collective):
        raise BadInputError(objection)
    cluster = cluster_of(topology, options.nccl.settings(), ranks)
    only = NONE if protocol == AUTO_PROTOCOL else protocol
    count_bytes = collective.nccl_count(spec) * spec.element_bytes
    with translated(ValueError, BadInputError, place=NCCL):
        return nccl_choice(cluster, collective.name, spec.size_bytes, count_bytes, spec.operation, spec.dtype, only)
