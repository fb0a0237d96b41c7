"""Three-tier Clos fabrics: pods of leaves and spines, joined by cores (Al-Fares et al., SIGCOMM 2008)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Final, Literal

from weft.quantities.definitions import Rate, whole
from weft.topologies import addressing
from weft.topologies.addressing import MAX_PORTS
from weft.topologies.builder import FabricBuilder, NewSwitch
from weft.topologies.errors import require_range
from weft.topologies.fabric import FabricSpec, LinkSpec
from weft.topologies.kinds.base import TopologyKind, TopologySection
from weft.topologies.limits import delay, queue_capacity, rate

NAME: Final = "fat_tree"


class FatTreeSection(TopologySection):
    """A fabric of three tiers: pods of leaves and spines, joined by cores."""

    kind: Literal["fat_tree"] = NAME
    """Three tiers; a section with `pods` is of this kind."""
    pods: Annotated[int, whole(2, MAX_PORTS)] = 4
    """Blocks of leaves and spines that a third tier joins."""
    leaves: Annotated[int, whole(1, MAX_PORTS)] = 4
    """Of each pod."""
    spines: Annotated[int, whole(1, MAX_PORTS)] = 2
    """Of each pod."""
    cores_per_spine: Annotated[int, whole(1, MAX_PORTS)] = 1
    """Cores above each spine of a pod."""
    fabric_rate: Rate | None = None
    """Of the links between leaves and spines; by default that of the hosts."""
    core_rate: Rate | None = None
    """Of the links between spines and cores; by default `fabric_rate`."""

    @property
    def leaf_count(self) -> int:
        """Leaves of a plane."""
        return self.pods * self.leaves

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return fat_tree(
            planes=self.planes,
            pods=self.pods,
            leaves_per_pod=self.leaves,
            spines_per_pod=self.spines,
            cores_per_spine=self.cores_per_spine,
            hosts_per_leaf=self.endpoints_per_leaf,
            host_rate_bps=self.host_rate,
            fabric_rate_bps=self.fabric_rate,
            core_rate_bps=self.core_rate,
            delay_ps=self.delay,
            queue_capacity_bytes=self.queue_capacity,
        )


@dataclass(frozen=True)
class _Parameters:
    """Validated parameters, rates resolved, so that equal fabrics have equal parameters."""

    planes: int
    pods: int
    leaves_per_pod: int
    spines_per_pod: int
    cores_per_spine: int
    hosts_per_leaf: int
    host_rate_bps: int
    fabric_rate_bps: int
    core_rate_bps: int
    delay_ps: int
    queue_capacity_bytes: int

    def link(self, rate_bps: int) -> LinkSpec:
        return LinkSpec(rate_bps, self.delay_ps, self.queue_capacity_bytes)


def fat_tree(
    planes: int = 1,
    pods: int = 4,
    leaves_per_pod: int = 2,
    spines_per_pod: int = 2,
    cores_per_spine: int = 2,
    hosts_per_leaf: int = 2,
    host_rate_bps: float = 10e9,
    fabric_rate_bps: float | None = None,
    core_rate_bps: float | None = None,
    delay_ps: int = 1_000_000,
    queue_capacity_bytes: int = 512 * 1024,
) -> FabricSpec:
    """Describe `planes` three-tier planes that share their hosts.

    HPCC's fabric of 320 hosts (SIGCOMM 2019, section 5.1) has pods=5, 4 leaves, 4 spines and 4 cores a spine, 16
    hosts a leaf, 100 Gb/s to the hosts and 400 Gb/s above.

    Args:
        planes: independent planes; a host has one NIC in each.
        pods: pods of each plane.
        leaves_per_pod: leaves of a pod; they count through all pods.
        spines_per_pod: spines of a pod, each linked once to every leaf of it; they count through all pods.
        cores_per_spine: cores above each spine. Core c of a plane is linked to spine c // cores_per_spine of every
            pod, so a plane has spines_per_pod x cores_per_spine cores.
        hosts_per_leaf: hosts on each leaf.
        host_rate_bps: rate of the links between hosts and leaves.
        fabric_rate_bps: rate of the links between leaves and spines; the hosts' rate by default.
        core_rate_bps: rate of the links between spines and cores; `fabric_rate_bps` by default.
        delay_ps: propagation delay of every link.
        queue_capacity_bytes: queue of every transmitting port.

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    fabric_rate = host_rate_bps if fabric_rate_bps is None else fabric_rate_bps
    parameters = _Parameters(
        planes=require_range("planes", planes, 1, addressing.MAX_PLANES),
        pods=require_range("pods", pods, 2, MAX_PORTS, "one pod is a leaf/spine fabric"),
        leaves_per_pod=require_range("leaves_per_pod", leaves_per_pod, 1, MAX_PORTS),
        spines_per_pod=require_range("spines_per_pod", spines_per_pod, 1, MAX_PORTS),
        cores_per_spine=require_range("cores_per_spine", cores_per_spine, 1, MAX_PORTS),
        hosts_per_leaf=require_range("hosts_per_leaf", hosts_per_leaf, 1, MAX_PORTS),
        host_rate_bps=rate("host_rate_bps", host_rate_bps),
        fabric_rate_bps=rate("fabric_rate_bps", fabric_rate),
        core_rate_bps=rate("core_rate_bps", fabric_rate if core_rate_bps is None else core_rate_bps),
        delay_ps=delay(delay_ps),
        queue_capacity_bytes=queue_capacity(queue_capacity_bytes),
    )
    builder = FabricBuilder()
    of_planes = [_Plane(builder, plane, parameters) for plane in range(parameters.planes)]
    host_link = parameters.link(parameters.host_rate_bps)
    for places in zip(*(plane.leaves for plane in of_planes), strict=True):
        for _ in range(parameters.hosts_per_leaf):
            builder.add_host(places, host_link)
    for plane in of_planes:
        plane.add_links(builder, parameters)
    return builder.build({"kind": NAME, **asdict(parameters)})


class _Plane:
    """The switches of a plane, those of a pod side by side."""

    def __init__(self, builder: FabricBuilder, plane: int, parameters: _Parameters) -> None:
        pods = range(parameters.pods)
        self.leaves = [
            builder.add_switch(plane, "leaf", coordinates=(pod, leaf), group=pod)
            for pod in pods
            for leaf in range(parameters.leaves_per_pod)
        ]
        self._spines = [
            # Other pods reach the spines of one number in the same way.
            builder.add_switch(plane, "spine", coordinates=(pod, spine), group=pod, position=(spine, pod))
            for pod in pods
            for spine in range(parameters.spines_per_pod)
        ]
        self._cores = [
            builder.add_switch(plane, "core", coordinates=(spine, core))
            for spine in range(parameters.spines_per_pod)
            for core in range(parameters.cores_per_spine)
        ]

    def add_links(self, builder: FabricBuilder, parameters: _Parameters) -> None:
        fabric_link = parameters.link(parameters.fabric_rate_bps)
        core_link = parameters.link(parameters.core_rate_bps)
        for leaves, spines in zip(
            _parts(self.leaves, parameters.pods), _parts(self._spines, parameters.pods), strict=True
        ):
            for leaf in leaves:
                for spine in spines:
                    builder.add_link(leaf, spine, fabric_link)
            for spine, cores in zip(spines, _parts(self._cores, parameters.spines_per_pod), strict=True):
                for core in cores:
                    builder.add_link(spine, core, core_link)


def _parts(switches: Sequence[NewSwitch], count: int) -> list[Sequence[NewSwitch]]:
    """Cut a list of switches into parts of one size."""
    size = len(switches) // count
    return [switches[first : first + size] for first in range(0, len(switches), size)]


KIND = TopologyKind(NAME, FatTreeSection, fat_tree, implied_by="pods")
