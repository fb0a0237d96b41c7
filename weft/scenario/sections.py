"""Sections of a scenario file: the fabric, its faults, its marking, its control."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from pydantic import Field

from weft.controller.ecn import DEFAULT_ECN_DEPTH, EcnDepth
from weft.quantities.definitions import TIME, QueueSize, Rate, ShortTime, Size, number, whole
from weft.scenario.links import FaultsOfLinks, LinkFaults
from weft.scenario.values import Section
from weft.topologies import LinkChoice


class ScaleUpSection(Section):
    """The links inside a host of several ranks."""

    rate: Rate = 3600 * 10**9
    """What each rank has to all others together."""
    latency: ShortTime = 500_000
    """From rank to rank."""


class FabricSection(Section):
    """A leaf/spine fabric of several planes, of two tiers or, with `pods`, of three."""

    planes: Annotated[int, whole(1, 8)] = 2
    """Networks side by side; a host has a NIC on each."""
    leaves: Annotated[int, whole(1, 64)] = 4
    """Of each plane, or of each of its pods."""
    spines: Annotated[int, whole(0, 64)] = 2
    """Of each plane, or of each of its pods. A single leaf needs none."""
    pods: Annotated[int, whole(2, 64)] | None = None
    """Blocks of leaves and spines that a third tier joins."""
    cores_per_spine: Annotated[int, whole(1, 64)] | None = None
    """Cores above each spine of a pod; 1 by default."""
    hosts_per_leaf: Annotated[int, whole(1, 64)] = 2
    """Hosts at a leaf."""
    host_rate: Rate = 10 * 10**9
    """Of the links between hosts and leaves."""
    fabric_rate: Rate | None = None
    """Of the links between leaves and spines; by default that of the hosts."""
    core_rate: Rate | None = None
    """Of the links between spines and cores; by default `fabric_rate`."""
    oversubscription: Annotated[float, number(0.001, 1000)] | None = None
    """What a leaf's hosts have together over what its uplinks have, in place of `fabric_rate`."""
    delay: ShortTime = 10**6
    """Of every link, one way."""
    queue_capacity: QueueSize = 512 * 1024
    """Memory of each port, unless switches share theirs (`buffer.capacity`)."""
    ranks_per_host: Annotated[int, whole(2, 64)] | None = None
    """Ranks of a host; each has a NIC of its own on each plane and is an endpoint (h0, h1, …) of the fabric."""
    rail_optimised: bool = False
    """Ranks of a host are each on a leaf of its own, where ranks of the same number meet; otherwise side by side."""
    scale_up: ScaleUpSection | None = None
    """The links that join the ranks of a host; by default those of `ranks_per_host` have this section's defaults."""

    @property
    def endpoints_per_leaf(self) -> int:
        """Ports of a leaf towards hosts."""
        return self.hosts_per_leaf * (1 if self.rail_optimised else self.ranks_per_host or 1)

    @property
    def host_count(self) -> int:
        """Endpoints of the whole fabric: hosts, or ranks where hosts have several."""
        return (self.pods or 1) * self.leaves * self.endpoints_per_leaf


class FaultsSection(LinkFaults):
    """Faults of every link, drawn from the scenario's seed."""

    links: list[FaultsOfLinks] = Field(default=[])
    """Other faults on some links, in place of those that an item names; of several items the last counts."""

    def on(self, sender: str, receiver: str) -> LinkFaults:
        """Return what goes wrong with what one node sends to another."""
        faults = self.everywhere
        for some in self.links:
            if LinkChoice.parse(some.link).takes(sender, receiver):
                faults = faults.with_those_of(some)
        return faults

    @cached_property
    def everywhere(self) -> LinkFaults:
        """What goes wrong on a link that none of `links` is about."""
        return LinkFaults(**{name: getattr(self, name) for name in LinkFaults.model_fields})

    @property
    def variants(self) -> list[LinkFaults]:
        """Those of all links, and each of `links` on top of them."""
        return [self.everywhere, *(self.everywhere.with_those_of(some) for some in self.links)]

    @property
    def any(self) -> bool:
        """Return whether any fault is asked for, of any link."""
        return any(each.any for each in self.variants)


class EcnSection(Section):
    """Marking thresholds at every port; by default HPCC's set-up (SIGCOMM 2019, section 5.1), scaled by rate."""

    kmin: Size | None = None
    """Depth of a queue from which packets are marked; goes with the other two."""
    kmax: Size | None = None
    """Depth above which every packet is marked."""
    pmax: Annotated[float, number(0, 1, above=True, example="0.2")] | None = None
    """Probability of a mark just below `kmax`."""
    at: EcnDepth = DEFAULT_ECN_DEPTH
    """Which depth of its queue marks a packet: the one that it leaves behind (`dequeue`, as switches with a shared
    buffer do), or the one that it met (`enqueue`).
    """


class ControlSection(Section):
    """The way between controller and switches."""

    latency: ShortTime = 0
    """Of a request and its answer together, under the virtual clock."""
    detection: Annotated[int, TIME.between(0, 10 * 10**12)] = 0
    """From when a link fails or comes back until the switches at its ends know."""
