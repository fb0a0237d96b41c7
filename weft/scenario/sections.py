"""Sections of a scenario file: a fabric's faults, its marking, its control, its switching, its fidelity."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, model_validator

from weft.controller.features.ecn import DEFAULT_ECN_DEPTH, EcnDepth, EcnProfile
from weft.quantities.definitions import MESSAGE_SIZE, SIZE, TIME, TOLERANCE, ShortTime, Size, Time, number
from weft.quantities.example import Example
from weft.quantities.units import PS_PER_S
from weft.scenario.links import FaultsOfHost, FaultsOfLinks, LinkFaults
from weft.scenario.values import Section
from weft.topologies import Endpoint, LinkChoice
from weft.traffic.transport_settings import SegmentSettings


class FaultsSection(LinkFaults):
    """Faults of every link, drawn from the scenario's seed."""

    links: list[FaultsOfLinks] = Field(default=[])
    """Other faults on some links, in place of those that an item names; of several items the last counts."""
    hosts: Annotated[list[FaultsOfHost], Example("[{host: h3, compute: 1.25}]")] = Field(default=[])
    """Hosts that compute slowly."""

    def on(self, sender: Endpoint, receiver: Endpoint) -> LinkFaults:
        """Return what goes wrong with what one end of a link sends to the other."""
        faults = self.everywhere
        for some in self.links:
            if LinkChoice.parse(some.link).takes(sender, receiver):
                faults = faults.with_those_of(some)
        return faults

    def compute_scale(self, host: str) -> float:
        """Return the factor that lengthens a host's computations."""
        return next((each.compute for each in self.hosts if each.host == host), 1.0)

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


class EcnSection(Section):
    """Marking thresholds at every port; by default for a class with `nscc` 0.2 and 0.8 times what the farthest pair's
    idle path holds at the port's rate, and `pmax` 1 (uet-htsim, main_uec.cpp); for others HPCC's set-up (SIGCOMM 2019,
    section 5.1), scaled by rate: `kmin` is 4 KB and `kmax` 16 KB for each Gb/s, `pmax` 0.2."""

    kmin: Annotated[Size | None, Example("40KB", (".kmax=160KB", ".pmax=0.2"))] = None
    """Depth of a queue from which packets are marked; goes with the other two."""
    kmax: Annotated[Size | None, Example("160KB", (".kmin=40KB", ".pmax=0.2"))] = None
    """Depth above which every packet is marked."""
    pmax: Annotated[
        Annotated[float, number(0, 1, above=True, example="0.2")] | None, Example("0.1", (".kmin=40KB", ".kmax=160KB"))
    ] = None
    """Probability of a mark just below `kmax`."""
    at: EcnDepth = DEFAULT_ECN_DEPTH
    """Which depth of its queue marks a packet: the one that it leaves behind (`dequeue`, as switches with a shared
    buffer do), or the one that it met (`enqueue`).
    """

    @property
    def profile(self) -> EcnProfile | None:
        """The thresholds, if they are given."""
        if self.kmin is None or self.kmax is None or self.pmax is None:
            return None
        return EcnProfile(self.kmin, self.kmax, self.pmax)


class OutageSection(Section):
    """A time in which the management network is down."""

    at: Time
    """When it fails, from when the fabric is up."""
    until: Annotated[int, TIME.between(1, example="200us")]
    """When it is back, counted as `at`."""

    @model_validator(mode="after")
    def _whole(self) -> OutageSection:
        if self.until <= self.at:
            raise ValueError(f"until ({self.until} ps) is not after at ({self.at} ps)")
        return self


class ControlSection(Section):
    """The management network: the way between controller and switches, apart from the fabric's links."""

    latency: ShortTime = 0
    """Time from a request to its answer, under the virtual clock."""
    detection: Annotated[int, TIME.between(0, 10 * PS_PER_S)] = 0
    """From when a link fails or comes back until the switches at its ends know."""
    outages: Annotated[list[OutageSection], Example("[{at: 20us, until: 200us}]")] = Field(default=[])
    """Times in which the network is down, one after the other, under the virtual clock: requests, answers and
    notifications wait. Switches go on by the tables that they have."""

    @model_validator(mode="after")
    def _one_after_the_other(self) -> ControlSection:
        for before, after in pairwise(self.outages):
            if after.at < before.until:
                raise ValueError(f"outages: one begins at {after.at} ps, before the one before has ended")
        return self


class SwitchingSection(Section):
    """When a switch hands a packet on, and the units in which its program reads queues and times."""

    mode: Literal["store-and-forward", "cut-through"] = "store-and-forward"
    """`store-and-forward`: once its last bit has come. `cut-through`: once its headers have.

    A packet is stored first if it would overtake its own end on a faster link, or if the program parses its payload (a
    contribution to an aggregation).
    """
    latency: ShortTime = 0
    """From then until it is handed on."""
    depth_unit: Literal["cells", "packets"] = "cells"
    """Unit of `enq_qdepth` and `deq_qdepth`, of 19 bits: cells of 80 B, or packets as BMv2 always has them. Cells have
    160 B, 320 B, … where ECN's `kmax` would not fit otherwise, by default beyond 2.6 Tb/s."""
    time_unit: Literal["ns", "us"] = "ns"
    """Unit of timestamps and `deq_timedelta`: nanoseconds, or microseconds as BMv2 always has them."""

    @property
    def cut_through(self) -> bool:
        """Return whether packets are handed on before their last bit has come."""
        return self.mode == "cut-through"

    @property
    def takes_part(self) -> bool:
        """Return whether it makes a difference to when packets are handed on."""
        return self.cut_through or self.latency > 0


MAX_SEGMENT_PACKETS = 255
"""Packets that one may stand for (Packet::kMaxPackets in engine/packets/packet.hpp)."""
LEAST_SEGMENT_PACKETS = 2


class FidelitySection(Section):
    """Whether packets in the middle of long messages travel together, and operations of jobs are repeated without
    packets; by default each packet travels on its own."""

    segment: Annotated[Annotated[int, SIZE.between(512, 1 << 20)] | None, Example("16KiB")] = None
    """Most payload that travels as one: 2 to 255 packets of `mtu`. Without it, packets."""
    messages: Annotated[int, MESSAGE_SIZE] = 1 << 14
    """Only messages of at least so many bytes travel in segments."""
    fast_forward: Annotated[float, TOLERANCE] | None = None
    """Collectives and messages of jobs that take as long each time, within this part of their time, are repeated
    without packets (docs/fidelity.md). Without it, none is."""

    @property
    def has_segments(self) -> bool:
        """Return whether anything but packets travels."""
        return self.segment is not None

    def segment_packets(self, mtu_bytes: int) -> int:
        """Return how many packets a segment has at most."""
        return (self.segment or mtu_bytes) // mtu_bytes

    def settings(self, mtu_bytes: int) -> SegmentSettings:
        """Return the hosts' settings."""
        return SegmentSettings(self.segment_packets(mtu_bytes), self.messages)
