"""A storage network: one more plane for storage traffic alone, with a NIC of every host, apart from the others.

Training's hosts have such NICs beside those of the training fabric (a DGX H100's two storage adapters); NCCL's
traffic does not use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weft.topologies import addressing
from weft.topologies.address_plan import OctetPlan
from weft.topologies.builder import FabricBuilder, require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec, SwitchSpec
from weft.topologies.limits import PlaneLinks, rate, uplink_rate

STORAGE_HOSTS_PER_LEAF = 32
STORAGE_SPINES = 2
STORAGE_RATE_BPS = 200 * 10**9
"""Of a port of a DGX H100's storage adapters as its reference architecture cables them, 200 or 400 Gb/s."""


def with_storage_network(
    fabric: FabricSpec,
    host_rate_bps: float = STORAGE_RATE_BPS,
    hosts_per_leaf: int = STORAGE_HOSTS_PER_LEAF,
    spines: int = STORAGE_SPINES,
    oversubscription: float = 1.0,
    delay_ps: int = 1_000_000,
    queue_capacity_bytes: int | None = None,
    failover: bool = False,
) -> FabricSpec:
    """Return the fabric with one more plane, a leaf/spine network for storage.

    Args:
        fabric: its endpoints get one more NIC each, the last; those that share a host are side by side on a leaf.
        host_rate_bps: rate of the links between hosts and leaves.
        hosts_per_leaf: most endpoints of a leaf.
        spines: spines, each linked once to every leaf; a single leaf has none.
        oversubscription: a leaf's host bandwidth over its uplink bandwidth, with `hosts_per_leaf` hosts.
        delay_ps: propagation delay of every link.
        queue_capacity_bytes: queue of every transmitting port; by default by its rate (`weft.topologies.port_memory`).
        failover: whether the other planes carry storage traffic while the network is lost; otherwise it waits.

    Raises:
        TopologyError: a figure is out of range, the fabric has a storage network, or its addresses leave no room.

    """
    if fabric.storage_plane is not None:
        raise TopologyError("the fabric has a storage network already")
    if not isinstance(failover, bool):
        raise TopologyError(f"failover={failover!r} is not valid", valid="True, False")
    hosts_per_leaf = require_range("hosts_per_leaf", hosts_per_leaf, 1, addressing.MAX_HOSTS_PER_LEAF)
    spines = require_range("spines", spines, 1, addressing.MAX_SPINES)
    leaf_count = -(-len(fabric.hosts) // hosts_per_leaf)
    if leaf_count > addressing.MAX_LEAVES:
        raise TopologyError(
            f"{len(fabric.hosts)} hosts on leaves of {hosts_per_leaf} need {leaf_count} leaves",
            valid=f"up to {addressing.MAX_LEAVES}",
        )
    host_rate = rate("host_rate_bps", host_rate_bps)
    of_uplinks = uplink_rate("fabric_rate_bps", None, oversubscription, host_rate, hosts_per_leaf, spines)
    links = PlaneLinks.checked(host_rate, of_uplinks, delay_ps, queue_capacity_bytes)
    require_links(
        len(fabric.links) + len(fabric.hosts) + (leaf_count * spines if leaf_count > 1 else 0),
        "the fabric with its storage network",
    )
    plane, number = fabric.planes, fabric.nics_per_host
    octet = _free_octet(fabric)
    builder = FabricBuilder(first_nic=number, address_plane=octet)
    leaves = [builder.add_switch(plane, "leaf") for _ in range(leaf_count)]
    place_of = {host: place for place, host in enumerate(_host_by_host(fabric))}
    for host in fabric.hosts:
        builder.add_host([leaves[place_of[host.index] // hosts_per_leaf]], links.host_link)
    if leaf_count > 1:
        above = [builder.add_switch(plane, "spine") for _ in range(spines)]
        for leaf in leaves:
            for spine in above:
                builder.add_link(leaf, spine, links.fabric_link)
    network = builder.build({})
    parameters = {
        "host_rate_bps": host_rate,
        "hosts_per_leaf": hosts_per_leaf,
        "spines": spines,
        "oversubscription": oversubscription,
        "delay_ps": links.delay_ps,
        "queue_capacity_bytes": links.queue_capacity_bytes,
        "failover": failover,
    }
    return replace(
        fabric,
        planes=plane + 1,
        hosts=tuple(
            replace(host, nics=(*host.nics, *own.nics)) for host, own in zip(fabric.hosts, network.hosts, strict=True)
        ),
        switches=(*fabric.switches, *_numbered(network.switches, len(fabric.switches))),
        links=(*fabric.links, *network.links),
        parameters={**fabric.parameters, "storage_network": parameters},
        plane_networks=(*fabric.plane_networks, OctetPlan().plane_networks(octet)),
        storage_plane=plane,
        storage_failover=failover,
    )


def _host_by_host(fabric: FabricSpec) -> Iterator[int]:
    """Yield the indices of all endpoints, those of a host side by side."""
    if fabric.scale_up is None:
        yield from range(len(fabric.hosts))
        return
    for ranks in fabric.scale_up.hosts(len(fabric.hosts)):
        yield from ranks


def _numbered(switches: tuple[SwitchSpec, ...], before: int) -> Iterator[SwitchSpec]:
    """Yield switches with device ids that follow those of the switches before."""
    for switch in switches:
        yield replace(switch, device_id=before + switch.device_id)


def _free_octet(fabric: FabricSpec) -> int:
    """Return the first plane's number whose networks (10.octet.0.0/16) hold no address of the fabric."""
    used = [ipv4 for ipv4, _ in fabric.plane_networks]
    for octet in range(fabric.planes, addressing.MAX_PLANES):
        own, _ = OctetPlan().plane_networks(octet)
        if not any(own.overlaps(each) for each in used):
            return octet
    raise TopologyError(
        f"the {fabric.planes} planes take all of 10.0.0.0/8, and leave no /16 for a storage network",
        valid="a smaller fabric, or fewer planes",
    )
