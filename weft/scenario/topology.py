"""From a scenario's fabric section to the fabric's description."""

from __future__ import annotations

from weft.scenario import FabricSection, KeyProblem, ScaleUpSection
from weft.topologies import FabricSpec, TopologyError, fat_tree, leaf_spine, with_scale_up


def build_topology(section: FabricSection) -> FabricSpec:
    """Return the fabric that the section describes.

    Raises:
        KeyProblem: the addressing plan or the interface names cannot hold it.
    """
    try:
        fabric = _network(section)
        if section.ranks_per_host is None:
            return fabric
        scale_up = section.scale_up or ScaleUpSection()
        return with_scale_up(
            fabric, section.ranks_per_host, scale_up.rate, scale_up.latency, section.rail_optimised
        )
    except TopologyError as error:
        raise KeyProblem("fabric", str(error)) from None


def _network(section: FabricSection) -> FabricSpec:
    if section.pods is not None:
        return fat_tree(
            planes=section.planes,
            pods=section.pods,
            leaves_per_pod=section.leaves,
            spines_per_pod=section.spines,
            cores_per_spine=section.cores_per_spine or 1,
            hosts_per_leaf=section.endpoints_per_leaf,
            host_rate_bps=section.host_rate,
            fabric_rate_bps=section.fabric_rate,
            core_rate_bps=section.core_rate,
            delay_ps=section.delay,
            queue_capacity_bytes=section.queue_capacity,
        )
    return leaf_spine(
        planes=section.planes,
        leaves=section.leaves,
        spines=section.spines,
        hosts_per_leaf=section.endpoints_per_leaf,
        host_rate_bps=section.host_rate,
        fabric_rate_bps=section.fabric_rate,
        oversubscription=section.oversubscription,
        delay_ps=section.delay,
        queue_capacity_bytes=section.queue_capacity,
    )
