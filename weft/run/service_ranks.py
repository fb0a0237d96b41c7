"""The fabric's ranks that serve others, and those that are served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from weft.quantities.definitions import whole
from weft.scenario.places import KeyProblem
from weft.topologies.kinds.base import TopologySection

FabricRank = Annotated[int, whole(0, 1 << 20)]


def clients_of(
    ranks: int, servers: Sequence[int], clients: Sequence[int] | None, count: int | None = None
) -> list[int]:
    """Return those given, or the first `count` of all that serve nobody; without a count, all of them."""
    if clients is not None:
        return list(clients)
    serving = set(servers)
    return [rank for rank in range(ranks) if rank not in serving][:count]


def check_service_ranks(
    fabric: TopologySection,
    servers: Sequence[int],
    clients: Sequence[int] | None,
    count: int | None,
    key: str,
    servers_key: str,
) -> int:
    """Return how many clients there are.

    Raises KeyProblem for ranks that the fabric has not, one that occurs twice, and other clients than `count`.
    """
    for own_key, own in ((servers_key, servers), ("clients", clients or ())):
        if len(set(own)) != len(own):
            twice = next(rank for rank in own if own.count(rank) > 1)
            raise KeyProblem(f"{key}.{own_key}", f"rank {twice} occurs twice (valid: each once)")
        if own and max(own) >= fabric.rank_count:
            raise KeyProblem(f"{key}.{own_key}", f"rank {max(own)} (valid: 0 to {fabric.rank_count - 1})")
    both = set(servers) & set(clients or ())
    if both:
        raise KeyProblem(f"{key}.clients", f"rank {min(both)} is among {servers_key} (valid: other ranks)")
    found = len(clients_of(fabric.rank_count, servers, clients, count))
    if not found or (count is not None and found != count):
        raise KeyProblem(
            f"{key}.clients" if clients is not None else f"{key}.{servers_key}",
            f"{found} clients on a fabric of {fabric.rank_count} ranks (valid: {count or '1 or more'})",
        )
    return found
