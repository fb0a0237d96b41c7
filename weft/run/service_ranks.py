"""Selects and checks the fabric's ranks that are servers and clients of a service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from weft.errors import translated
from weft.quantities.definitions import whole
from weft.quantities.readable import counted
from weft.scenario.places import KeyProblem
from weft.topologies import FabricSpec, TopologyError
from weft.topologies.kinds.base import TopologySection

FabricRank = Annotated[int, whole(0, 1 << 20)]


def clients_of(
    ranks: int, servers: Sequence[int], clients: Sequence[int] | None, count: int | None = None
) -> list[int]:
    """Return the clients given, or the first `count` ranks that are not servers, all without a count."""
    if clients is not None:
        return list(clients)
    serving = set(servers)
    return [rank for rank in range(ranks) if rank not in serving][:count]


def check_ranks_of_group(fabric: TopologySection, ranks: Sequence[int] | None, key: str) -> int:
    """Return the number of ranks in a group; None stands for all.

    Raises KeyProblem for ranks outside the fabric and duplicates.
    """
    if ranks is None:
        return fabric.rank_count
    if len(set(ranks)) != len(ranks):
        twice = next(rank for rank in ranks if ranks.count(rank) > 1)
        raise KeyProblem(f"{key}.ranks", f"rank {twice} occurs twice", valid="each once")
    if max(ranks) >= fabric.rank_count:
        raise KeyProblem(f"{key}.ranks", f"rank {max(ranks)}", valid=f"0 to {fabric.rank_count - 1}")
    return len(ranks)


def check_service_ranks(
    fabric: TopologySection,
    servers: Sequence[int],
    clients: Sequence[int] | None,
    count: int | None,
    key: str,
    servers_key: str,
) -> int:
    """Return the number of clients.

    `count` is the number that `checkpoint.parallel` requires. Raises KeyProblem for ranks outside the fabric,
    duplicates, and a number of clients other than `count`.
    """
    for own_key, own in ((servers_key, servers), ("clients", clients or ())):
        if len(set(own)) != len(own):
            twice = next(rank for rank in own if own.count(rank) > 1)
            raise KeyProblem(f"{key}.{own_key}", f"rank {twice} occurs twice", valid="each once")
        if own and max(own) >= fabric.rank_count:
            raise KeyProblem(f"{key}.{own_key}", f"rank {max(own)}", valid=f"0 to {fabric.rank_count - 1}")
    both = set(servers) & set(clients or ())
    if both:
        raise KeyProblem(f"{key}.clients", f"rank {min(both)} is among {servers_key}", valid="other ranks")
    found = len(clients_of(fabric.rank_count, servers, clients, count))
    if count is not None and found != count:
        needed = f"{counted(count, 'rank')} that write a checkpoint"
        if clients is not None:
            raise KeyProblem(f"{key}.clients", f"{counted(found, 'client')} for {needed}", valid=f"{count}")
        raise KeyProblem(
            f"{key}.checkpoint.parallel",
            f"{needed} on a fabric of {counted(fabric.rank_count, 'rank')}, of which {len(servers)} are {servers_key}",
            valid=f"up to {found}",
        )
    if not found:
        raise KeyProblem(
            f"{key}.{servers_key}",
            f"no client is left on a fabric of {counted(fabric.rank_count, 'rank')}",
            valid=f"up to {fabric.rank_count - 1} of them",
        )
    return found


def check_service_paths(
    topology: FabricSpec, clients: Sequence[int], servers: Sequence[int], key: str, planes: Sequence[int] = ()
) -> None:
    """Check that every client has a path to every server, within their host or over NICs in some planes.

    By default these are the planes of all traffic.

    Raises KeyProblem for a pair without a path.
    """
    scale_up, known = topology.scale_up, set[tuple[str, str]]()
    nics = [nic for plane in planes or topology.training_planes for nic in topology.nics_of_planes[plane]]
    for client in clients:
        for server in servers:
            if scale_up is not None and scale_up.share_a_host(client, server):
                continue
            for nic in nics:
                first, last = (topology.hosts[rank].nic(nic).switch for rank in (client, server))
                if (first, last) in known:
                    continue
                known.add((first, last))
                with translated(TopologyError, KeyProblem, f"{key}.clients", valid="ranks with a path to it"):
                    topology.require_path(client, server, nic)
