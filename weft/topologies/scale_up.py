"""Hosts with several ranks: which of a fabric's endpoints share a host, and the links that join them inside it.

An endpoint of a fabric (`HostSpec`: a NIC in every plane) belongs to one rank. If a host has several ranks, each has
separate NICs, and scale-up links (NVLink and the like) join the ranks.
"""

from __future__ import annotations

from dataclasses import asdict, replace

from weft.topologies.errors import TopologyError, nearest_multiples, require_range
from weft.topologies.fabric import FabricSpec, ScaleUpSpec
from weft.topologies.limits import delay, rate
from weft.topologies.parts import RELAY_MODES, RelayMode


def with_scale_up(
    fabric: FabricSpec,
    ranks_per_host: int = 8,
    rate_bps: float = 3.6e12,
    latency_ps: int = 500_000,
    rail_optimised: bool = False,
    relay: RelayMode = "unreachable",
    reductions: bool = False,
) -> FabricSpec:
    """Return the fabric with its endpoints grouped into hosts.

    Args:
        fabric: its endpoints become ranks.
        ranks_per_host: ranks of every host.
        rate_bps: total rate of a rank's links to the other ranks of its host, in each direction.
        latency_ps: latency from rank to rank.
        rail_optimised: rank i of a host is on leaf i of a block with a leaf for each rank of a host, so that ranks of
            the same number meet at one leaf, their rail; otherwise a host's ranks are side by side on one leaf.
        relay: which messages ranks of a host send on for each other; see `FabricSpec.relay`.
        reductions: whether the switch between a host's ranks reduces and multicasts.

    Raises:
        TopologyError: the hosts do not fill the leaves, or a figure is out of range.

    """
    if fabric.scale_up is not None:
        raise TopologyError("the fabric has scale-up links already")
    leaves = fabric.edge_switches(0)
    ranks_per_host = require_range("ranks_per_host", ranks_per_host, 2, max(2, len(fabric.hosts)))
    latency_ps = delay(latency_ps, "latency_ps")
    for name, value in (("rail_optimised", rail_optimised), ("reductions", reductions)):
        if not isinstance(value, bool):
            raise TopologyError(f"{name}={value!r} is not valid", valid="True, False")
    if relay not in RELAY_MODES:
        raise TopologyError(f"relay={relay!r} is not valid", valid=RELAY_MODES)
    if relay == "rails" and not rail_optimised:
        raise TopologyError("relay='rails' without rails", valid="rail_optimised=True")
    per_leaf = len(leaves[0].host_ports)
    for leaf in leaves:
        if len(leaf.host_ports) != per_leaf:
            raise TopologyError(
                f"{leaf.name} has {len(leaf.host_ports)} ranks, {leaves[0].name} {per_leaf}",
                valid="the same at all",
            )
    if rail_optimised and len(leaves) % ranks_per_host:
        raise TopologyError(
            f"{len(leaves)} leaves are not whole blocks of {ranks_per_host} rails",
            valid=nearest_multiples(len(leaves), ranks_per_host),
        )
    if not rail_optimised and per_leaf % ranks_per_host:
        raise TopologyError(
            f"{per_leaf} ranks on a leaf do not fill hosts of {ranks_per_host} ranks",
            valid=nearest_multiples(per_leaf, ranks_per_host),
        )
    scale_up = ScaleUpSpec(
        ranks_per_host=ranks_per_host,
        rank_stride=per_leaf if rail_optimised else 1,
        rate_bps=rate("rate_bps", rate_bps),
        latency_ps=latency_ps,
        relay=relay,
        reductions=reductions,
    )
    described = {name: value for name, value in asdict(scale_up).items() if name != "rank_stride"}
    parameters = {**fabric.parameters, "scale_up": {**described, "rail_optimised": rail_optimised}}
    return replace(fabric, scale_up=scale_up, parameters=parameters)
