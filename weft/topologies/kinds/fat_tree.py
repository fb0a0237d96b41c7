"""Three-tier Clos fabrics: cores join pods of leaves and spines (Al-Fares et al., SIGCOMM 2008)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Annotated, Final, Literal

from weft.quantities.definitions import Rate, number, whole
from weft.topologies import addressing
from weft.topologies.addressing import MAX_PORTS
from weft.topologies.builder import FabricBuilder, NewSwitch, require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec
from weft.topologies.kinds.base import TopologyKeyError, TopologyKind, TopologySection
from weft.topologies.limits import PlaneLinks, rate, uplink_rate

NAME: Final = "fat_tree"
_OF_K = ("pods", "leaves", "spines", "cores_per_spine")


class FatTreeSection(TopologySection):
    """A fabric of three tiers: pods of leaves and spines, joined by cores."""

    kind: Literal["fat_tree"] = NAME
    """Three tiers; a section with `pods` or `k` is of this kind."""
    k: Annotated[int, whole(2, MAX_PORTS)] | None = None
    """Ports of every switch, an even number: a k-ary fat tree with k pods of k/2 leaves and k/2 spines, k/2 hosts a
    leaf and (k/2)² cores. Replaces `pods`, `leaves`, `spines`, `cores_per_spine` and `hosts_per_leaf`."""
    pods: Annotated[int, whole(2, MAX_PORTS)] = 4
    """Blocks of leaves and spines that cores join."""
    leaves: Annotated[int, whole(1, MAX_PORTS)] = 4
    """Leaves of each pod."""
    spines: Annotated[int, whole(1, MAX_PORTS)] = 2
    """Spines of each pod."""
    cores_per_spine: Annotated[int, whole(1, MAX_PORTS)] = 1
    """Cores above each spine of a pod."""
    fabric_rate: Rate | None = None
    """Rate of the links between leaves and spines; by default `host_rate`."""
    oversubscription: Annotated[float, number(0.001, 1000, example="2")] | None = None
    """Ratio of a leaf's host bandwidth to its uplink bandwidth, instead of `fabric_rate`."""
    core_rate: Rate | None = None
    """Rate of the links between spines and cores; by default `fabric_rate`."""
    core_oversubscription: Annotated[float, number(0.001, 1000, example="2")] | None = None
    """Ratio of a spine's bandwidth to leaves to its bandwidth to cores, instead of `core_rate`."""

    @property
    def leaf_count(self) -> int:
        """Leaves of a plane."""
        return self.pods * self.leaves if self.k is None else self.k * (self.k // 2)

    @property
    def endpoints_per_leaf(self) -> int:
        """Ports of a leaf to hosts."""
        return super().endpoints_per_leaf if self.k is None else self.k // 2

    def check(self) -> None:
        """Check that `k` is even and not combined with keys that it sets, and the shared keys."""
        if self.k is not None:
            given = [name for name in ("hosts_per_leaf", *_OF_K) if name in self.model_fields_set]
            if given:
                raise TopologyKeyError(given[0], f"follows from k: {self.k}; give one of the two")
            if self.k % 2:
                raise TopologyKeyError("k", odd_k(self.k))
            ranks = self.ranks_per_host or 1
            if not self.rail_optimised and (self.k // 2) % ranks:
                nearest = ", ".join(str(each) for each in range(1, self.k // 2 + 1) if (self.k // 2) % each == 0)
                raise TopologyKeyError(
                    "ranks_per_host",
                    f"{ranks} do not fill the {self.k // 2} ports of a leaf",
                    valid=nearest,
                )
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return fat_tree(
            pods=self.pods,
            leaves_per_pod=self.leaves,
            spines_per_pod=self.spines,
            cores_per_spine=self.cores_per_spine,
            hosts_per_leaf=self.endpoints_per_leaf,
            core_rate_bps=self.core_rate,
            oversubscription=self.oversubscription,
            core_oversubscription=self.core_oversubscription,
            k=self.k,
            **self.network_arguments(self.fabric_rate),
        )


def odd_k(k: int) -> str:
    """Return an error message for an odd k, with the nearest valid values."""
    return f"k={k} is odd: half of a switch's ports lead up (valid: even numbers, such as {max(2, k - 1)} or {k + 1})"


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
    queue_capacity_bytes: int | None = None,
    oversubscription: float | None = None,
    core_oversubscription: float | None = None,
    k: int | None = None,
) -> FabricSpec:
    """Describe `planes` three-tier planes that share their hosts.

    HPCC's fabric of 320 hosts (SIGCOMM 2019, section 5.1) has pods=5, 4 leaves, 4 spines and 4 cores a spine, 16
    hosts a leaf, 100 Gb/s to the hosts and 400 Gb/s above.

    Args:
        planes: independent planes; a host has one NIC in each.
        pods: pods of each plane.
        leaves_per_pod: leaves of a pod; numbered across all pods.
        spines_per_pod: spines of a pod, each linked once to every leaf of the pod; numbered across all pods.
        cores_per_spine: cores above each spine. Core c of a plane is linked to spine c // cores_per_spine of every
            pod, so a plane has spines_per_pod x cores_per_spine cores.
        hosts_per_leaf: hosts on each leaf.
        host_rate_bps: rate of the links between hosts and leaves.
        fabric_rate_bps: rate of the links between leaves and spines; the hosts' rate by default.
        core_rate_bps: rate of the links between spines and cores; `fabric_rate_bps` by default.
        delay_ps: propagation delay of every link.
        queue_capacity_bytes: queue of every transmitting port; by default by its rate (`weft.topologies.port_memory`).
        oversubscription: instead of `fabric_rate_bps`: a leaf's host bandwidth over its uplink bandwidth.
        core_oversubscription: instead of `core_rate_bps`: a spine's leaf bandwidth over its core bandwidth.
        k: ports of every switch of the k-ary fat tree (Al-Fares et al., section 2.2); replaces the numbers of pods,
            leaves, spines, cores and hosts.

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    if k is not None:
        k = require_range("k", k, 2, MAX_PORTS)
        if k % 2:
            raise TopologyError(odd_k(k))
        pods, leaves_per_pod, spines_per_pod, cores_per_spine, hosts_per_leaf = k, *[k // 2] * 4
    host_rate = rate("host_rate_bps", host_rate_bps)
    fabric_rate = uplink_rate(
        "fabric_rate_bps", fabric_rate_bps, oversubscription, host_rate, hosts_per_leaf, spines_per_pod
    )
    planes = require_range("planes", planes, 1, addressing.MAX_PLANES)
    pods = require_range("pods", pods, 2, MAX_PORTS, "one pod is a leaf/spine fabric")
    leaves = require_range("leaves_per_pod", leaves_per_pod, 1, MAX_PORTS)
    spines = require_range("spines_per_pod", spines_per_pod, 1, MAX_PORTS)
    cores = require_range("cores_per_spine", cores_per_spine, 1, MAX_PORTS)
    hosts = require_range("hosts_per_leaf", hosts_per_leaf, 1, MAX_PORTS)
    core_rate = uplink_rate("core_rate_bps", core_rate_bps, core_oversubscription, fabric_rate, leaves, cores, "core_")
    links = PlaneLinks.checked(host_rate, fabric_rate, delay_ps, queue_capacity_bytes)
    require_links(
        planes * pods * (leaves * (hosts + spines) + spines * cores),
        f"planes={planes} of pods={pods} with leaves_per_pod={leaves}, spines_per_pod={spines}, "
        f"cores_per_spine={cores} and hosts_per_leaf={hosts}",
    )
    builder = FabricBuilder()
    of_planes = [_plane(builder, plane, (pods, leaves, spines, cores)) for plane in range(planes)]
    builder.add_hosts([of_pods for of_pods, _, _ in of_planes], hosts, links.host_link)
    core_link = links.link(core_rate)
    for all_leaves, all_spines, all_cores in of_planes:
        for own_leaves, own_spines in zip(_parts(all_leaves, pods), _parts(all_spines, pods), strict=True):
            for leaf, spine in product(own_leaves, own_spines):
                builder.add_link(leaf, spine, links.fabric_link)
            for spine, above in zip(own_spines, _parts(all_cores, spines), strict=True):
                for core in above:
                    builder.add_link(spine, core, core_link)
    # Rates are resolved, so that equal fabrics have equal parameters.
    return builder.build(
        {
            "kind": NAME,
            "planes": planes,
            "pods": pods,
            "leaves_per_pod": leaves,
            "spines_per_pod": spines,
            "cores_per_spine": cores,
            "hosts_per_leaf": hosts,
            "host_rate_bps": links.host_rate_bps,
            "fabric_rate_bps": links.fabric_rate_bps,
            "core_rate_bps": core_rate,
            "delay_ps": links.delay_ps,
            "queue_capacity_bytes": links.queue_capacity_bytes,
        }
    )


def _plane(
    builder: FabricBuilder, plane: int, counts: tuple[int, int, int, int]
) -> tuple[list[NewSwitch], list[NewSwitch], list[NewSwitch]]:
    """Add a plane's leaves, spines and cores, ordered by pod, given the counts of pods and of each within these."""
    pods, leaves, spines, cores = map(range, counts)
    return (
        [builder.add_switch(plane, "leaf", coordinates=(pod, leaf), group=pod) for pod, leaf in product(pods, leaves)],
        [
            # Other pods reach all spines with the same number in the same way.
            builder.add_switch(plane, "spine", coordinates=(pod, spine), group=pod, position=(spine, pod))
            for pod, spine in product(pods, spines)
        ],
        [builder.add_switch(plane, "core", coordinates=(spine, core)) for spine, core in product(spines, cores)],
    )


def _parts(switches: Sequence[NewSwitch], count: int) -> list[Sequence[NewSwitch]]:
    """Split a list of switches into `count` equal parts."""
    size = len(switches) // count
    return [switches[first : first + size] for first in range(0, len(switches), size)]


KIND = TopologyKind(NAME, FatTreeSection, fat_tree, implied_by=("pods", "k"), is_up_down=True)
