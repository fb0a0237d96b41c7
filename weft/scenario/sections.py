"""Sections of a scenario file: a fabric's faults, its marking, its control."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from weft.controller.features.ecn import DEFAULT_ECN_DEPTH, EcnDepth, EcnProfile, EcnSettings, SplitSettings
from weft.quantities.definitions import TIME, ShortTime, Size, number
from weft.quantities.units import PS_PER_S
from weft.scenario.links import FaultsOfLinks, LinkFaults
from weft.scenario.values import FeatureSection, Section
from weft.topologies import Endpoint, LinkChoice

if TYPE_CHECKING:
    from weft.scenario.options import FabricOptions


class FaultsSection(LinkFaults):
    """Faults of every link, drawn from the scenario's seed."""

    links: list[FaultsOfLinks] = Field(default=[])
    """Other faults on some links, in place of those that an item names; of several items the last counts."""

    def on(self, sender: Endpoint, receiver: Endpoint) -> LinkFaults:
        """Return what goes wrong with what one end of a link sends to the other."""
        faults = self.everywhere
        for some in self.links:
            if LinkChoice.parse(some.link).takes(sender, receiver):
                faults = faults.with_those_of(some)
        return faults

    @cached_property
    def everywhere(self) -> LinkFaults:
        """Faults of a link that matches none of `links`."""
        return LinkFaults(**{name: getattr(self, name) for name in LinkFaults.model_fields})

    @property
    def variants(self) -> list[LinkFaults]:
        """Faults of all links, and each of `links` on top of them."""
        return [self.everywhere, *(self.everywhere.with_those_of(some) for some in self.links)]

    @property
    def any(self) -> bool:
        """Return whether any fault is asked for, of any link."""
        return any(each.any for each in self.variants)


class EcnSection(FeatureSection):
    """Marking thresholds at every port; by default HPCC's set-up (SIGCOMM 2019, section 5.1), scaled by rate: `kmin` is
    4 KB and `kmax` 16 KB for each Gb/s, `pmax` 0.2."""

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

    def of_features(self, options: FabricOptions) -> Iterator[object]:
        """Return thresholds of the classes of data, and from which depth ports split segments."""
        profiles = None
        if self.kmin is not None and self.kmax is not None and self.pmax is not None:
            profile = EcnProfile(self.kmin, self.kmax, self.pmax)
            profiles = dict.fromkeys(options.scheduling.data_classes, profile)
        yield EcnSettings(profiles, self.at)
        yield SplitSettings(options.fidelity.has_segments, self.kmin)


class ControlSection(Section):
    """The way between controller and switches."""

    latency: ShortTime = 0
    """Time from a request to its answer, under the virtual clock."""
    detection: Annotated[int, TIME.between(0, 10 * PS_PER_S)] = 0
    """From when a link fails or comes back until the switches at its ends know."""
