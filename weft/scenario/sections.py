"""Sections of a scenario file: the fabric, its faults, its marking, its control."""

from __future__ import annotations

from functools import cached_property

from pydantic import Field

from controller.ecn import DEFAULT_ECN_DEPTH, EcnDepth
from weft.scenario.links import FaultsOfLinks, LinkChoice, LinkFaults
from weft.scenario.values import RateBps, Section, SizeBytes, TimePs


class ScaleUpSection(Section):
    """The links inside a host of several ranks: what each rank has to all others together, and how far they are."""

    rate: RateBps = 3600 * 10**9
    latency: TimePs = 500_000


class FabricSection(Section):
    """A leaf/spine fabric of several planes; a host has one NIC on each plane.

    With `ranks_per_host`, every rank of a host has a NIC of its own on each plane and is an endpoint (h0, h1, …) of the
    fabric; `scale_up` links join the ranks of a host. They are side by side on one leaf, or with `rail_optimised` each
    on a leaf of its own, where `hosts_per_leaf` ranks of the same number meet.

    With `pods`, leaves and spines are those of a pod, and a third tier joins the pods: `cores_per_spine` cores above
    each spine of a pod.
    """

    planes: int = Field(2, ge=1, le=8)
    leaves: int = Field(4, ge=1, le=64)
    spines: int = Field(2, ge=0, le=64)
    pods: int | None = Field(None, ge=2, le=64)
    cores_per_spine: int | None = Field(None, ge=1, le=64)
    hosts_per_leaf: int = Field(2, ge=1, le=64)
    host_rate: RateBps = 10 * 10**9
    fabric_rate: RateBps | None = None
    core_rate: RateBps | None = None
    oversubscription: float | None = Field(None, gt=0)
    delay: TimePs = 10**6
    queue_capacity: SizeBytes = 512 * 1024
    ranks_per_host: int | None = Field(None, ge=2, le=64)
    rail_optimised: bool = False
    scale_up: ScaleUpSection | None = None

    @property
    def endpoints_per_leaf(self) -> int:
        """Ports of a leaf towards hosts."""
        return self.hosts_per_leaf * (1 if self.rail_optimised else self.ranks_per_host or 1)

    @property
    def host_count(self) -> int:
        """Endpoints of the whole fabric: hosts, or ranks where hosts have several."""
        return (self.pods or 1) * self.leaves * self.endpoints_per_leaf


class FaultsSection(LinkFaults):
    """Faults of every link, drawn from the scenario's seed.

    `links`: other ones on some, in place of those that an item names; where several items name a link, the last counts.
    """

    links: list[FaultsOfLinks] = Field(default=[])

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
    """Marking thresholds at every port; by default HPCC's set-up (SIGCOMM 2019, section 5.1), scaled by rate.

    `at`: which depth of its queue marks a packet, the one it leaves behind (`dequeue`, as switches with a shared buffer
    do), or the one it met (`enqueue`).
    """

    kmin: SizeBytes | None = None
    kmax: SizeBytes | None = None
    pmax: float | None = Field(None, gt=0.0, le=1.0)
    at: EcnDepth = DEFAULT_ECN_DEPTH


class ControlSection(Section):
    """The way between controller and switches. `latency`: of a request and its answer, under the virtual clock.

    `detection`: from when a link fails or comes back until the switches at its ends know.
    """

    latency: TimePs = Field(0, le=10**12)
    detection: TimePs = Field(0, le=10**13)
