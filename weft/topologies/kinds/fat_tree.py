"""Three-tier Clos fabrics: pods of leaves and spines, joined by cores (Al-Fares et al., SIGCOMM 2008)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Final, Literal

from weft.quantities.definitions import Rate, whole
from weft.topologies import addressing
from weft.topologies.assembly import Cable, Design, Place, assemble
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec, LinkSpec
from weft.topologies.kinds.base import TopologyKind, TopologySection
from weft.topologies.limits import delay, queue_capacity, rate

NAME: Final = "fat_tree"
# A leaf with the index of the cores' octet would share their addresses.
_MAX_LEAVES = addressing.MAX_LEAVES - 1


class FatTreeSection(TopologySection):
    """A fabric of three tiers: pods of leaves and spines, joined by cores."""

    kind: Literal["fat_tree"] = NAME
    """Three tiers; a section with `pods` is of this kind."""
    pods: Annotated[int, whole(2, 64)] = 4
    """Blocks of leaves and spines that a third tier joins."""
    leaves: Annotated[int, whole(1, 64)] = 4
    """Of each pod."""
    spines: Annotated[int, whole(1, 64)] = 2
    """Of each pod."""
    cores_per_spine: Annotated[int, whole(1, 64)] = 1
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
        pods=require_range("pods", pods, 2, _MAX_LEAVES, "one pod is a leaf/spine fabric"),
        leaves_per_pod=require_range("leaves_per_pod", leaves_per_pod, 1, _MAX_LEAVES),
        spines_per_pod=require_range("spines_per_pod", spines_per_pod, 1, addressing.MAX_SPINES),
        cores_per_spine=require_range("cores_per_spine", cores_per_spine, 1, addressing.MAX_CORES),
        hosts_per_leaf=require_range("hosts_per_leaf", hosts_per_leaf, 1, addressing.MAX_HOSTS_PER_LEAF),
        host_rate_bps=rate("host_rate_bps", host_rate_bps),
        fabric_rate_bps=rate("fabric_rate_bps", fabric_rate),
        core_rate_bps=rate("core_rate_bps", fabric_rate if core_rate_bps is None else core_rate_bps),
        delay_ps=delay(delay_ps),
        queue_capacity_bytes=queue_capacity(queue_capacity_bytes),
    )
    _require_addresses(parameters)
    design = Design(
        planes=parameters.planes,
        places=_places(parameters),
        cables=_cables(parameters),
        hosts_per_leaf=parameters.hosts_per_leaf,
        host_link=parameters.link(parameters.host_rate_bps),
    )
    return assemble(design, {"kind": NAME, **asdict(parameters)})


def _require_addresses(parameters: _Parameters) -> None:
    for product, first, second, most in (
        ("leaves", "pods", "leaves_per_pod", _MAX_LEAVES),
        ("spines", "pods", "spines_per_pod", addressing.MAX_SPINES),
        ("cores", "spines_per_pod", "cores_per_spine", addressing.MAX_CORES),
    ):
        one, other = getattr(parameters, first), getattr(parameters, second)
        if one * other > most:
            raise TopologyError(
                f"{first}={one} x {second}={other} are {one * other} {product} a plane (valid: at most {most})"
            )


def _places(parameters: _Parameters) -> list[Place]:
    return [
        *(Place("leaf", leaf) for leaf in range(parameters.pods * parameters.leaves_per_pod)),
        *(Place("spine", spine) for spine in range(parameters.pods * parameters.spines_per_pod)),
        *(Place("core", core) for core in range(parameters.spines_per_pod * parameters.cores_per_spine)),
    ]


def _cables(parameters: _Parameters) -> list[Cable]:
    fabric_link = parameters.link(parameters.fabric_rate_bps)
    core_link = parameters.link(parameters.core_rate_bps)
    cables = []
    for pod in range(parameters.pods):
        spines = [
            Place("spine", pod * parameters.spines_per_pod + spine)
            for spine in range(parameters.spines_per_pod)
        ]
        for leaf in range(parameters.leaves_per_pod):
            lower = Place("leaf", pod * parameters.leaves_per_pod + leaf)
            cables += [Cable(lower, spine, fabric_link) for spine in spines]
        for number, spine in enumerate(spines):
            first = number * parameters.cores_per_spine
            cables += [
                Cable(spine, Place("core", core), core_link)
                for core in range(first, first + parameters.cores_per_spine)
            ]
    return cables


KIND = TopologyKind(NAME, FatTreeSection, fat_tree, implied_by="pods")
