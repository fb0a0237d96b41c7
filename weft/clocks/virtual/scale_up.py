"""The links inside hosts of several ranks, in the partition that those ranks share."""

from __future__ import annotations

from collections.abc import Mapping

from weft.engine import Engine, _core
from weft.topologies import FabricSpec
from weft.traffic.scale_up import ScaleUpLinks


def scale_up_links(fabric: FabricSpec, engines: Mapping[str, Engine]) -> dict[int, ScaleUpLinks]:
    """Make the links of every host of several ranks; returns them by rank. `engines` are the endpoints' by name."""
    links: dict[int, ScaleUpLinks] = {}
    if fabric.scale_up is None:
        return links
    for ranks in fabric.scale_up.hosts(len(fabric.hosts)):
        domain = _core.ScaleUpDomain(
            engines[fabric.hosts[ranks[0]].name],
            rate_bps=fabric.scale_up.rate_bps,
            latency_ps=fabric.scale_up.latency_ps,
            port_count=len(ranks),
        )
        links |= dict.fromkeys(ranks, ScaleUpLinks(domain, ranks))
    return links
