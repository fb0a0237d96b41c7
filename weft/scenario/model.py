"""The whole of a scenario."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from weft.paths import FABRIC_P4
from weft.quantities.definitions import number, whole
from weft.scenario.events import LinkEventSection
from weft.scenario.memory import BufferSection, CreditsSection, PfcSection, SchedulingSection
from weft.scenario.nic import NicSection
from weft.scenario.observe import ObserveSection
from weft.scenario.places import Places
from weft.scenario.sections import ControlSection, EcnSection, FaultsSection
from weft.scenario.switching import SwitchingSection
from weft.scenario.topology import Fabric
from weft.scenario.traffic import Traffic
from weft.scenario.transport import TransportSection
from weft.scenario.values import Section, Text
from weft.topologies.kinds.leaf_spine import LeafSpineSection

# Slots of a switch (SLOTS in p4/include/aggregation.p4).
MAX_SLOTS = 4096


# Threads that serve a virtual run (kMaxWorkers in engine/time/partitions.hpp).
MAX_WORKERS = 256


class Scenario(Section):
    """All that a run depends on, except the machine."""

    name: Annotated[
        str, Text("a name of up to 41 of a-z, 0-9 and -", r"\A[a-z0-9][a-z0-9-]{0,40}\Z", "incast-100g")
    ] = "fabric"
    """Of the results' directory."""
    clock: Literal["real", "virtual"] | None = None
    """`real`: in Mininet. `virtual`: simulated. By default `real` for root."""
    target: Literal["embedded", "bmv2"] = "embedded"
    """Which switch runs the P4 program."""
    links: Literal["veth", "internal"] = "veth"
    """Under the real clock: links between switches as interfaces, or inside the engine."""
    grpc: Literal["unix", "tcp"] = "unix"
    """Under the real clock: how controllers reach the embedded switches. `unix`: a socket of whoever runs the lab.
    `tcp`: a port of the loopback, open to every user of the machine."""
    ip_version: Literal[4, 6] = 4
    """Of RoCEv2 and aggregation packets."""
    dilation: Annotated[float, number(1.0, 1e6, example="1000")] = 1000.0
    """Under the real clock: real seconds that an emulated second takes."""
    seed: Annotated[int, whole(0, 2**63 - 1)] = 1
    """Of everything that is drawn at random."""
    workers: Annotated[int, whole(1, MAX_WORKERS)] = 1
    """Threads that serve a virtual run; the results do not depend on it."""
    p4: Path = FABRIC_P4
    """The switches' program; relative to the scenario's file. By default Weft's own."""
    compiler: Literal["embedded", "p4c"] = "embedded"
    """Which compiler compiles it."""
    mtu: Literal[256, 512, 1024, 2048, 4096] = 1024
    """Payload bytes of a full RoCEv2 packet."""
    int_telemetry: bool = Field(True, alias="int")
    """Data packets carry in-band telemetry (INT), as HPCC needs it."""
    slots: Annotated[int, whole(1, MAX_SLOTS)] | None = None
    """Of the aggregation job at each switch; by default two bandwidth-delay products."""
    fabric: Fabric = LeafSpineSection()
    faults: FaultsSection = FaultsSection()
    ecn: EcnSection = EcnSection()
    control: ControlSection = ControlSection()
    transport: TransportSection = TransportSection()
    nic: NicSection = NicSection()
    buffer: BufferSection = BufferSection()
    scheduling: SchedulingSection = SchedulingSection()
    pfc: PfcSection = PfcSection()
    credits: CreditsSection = CreditsSection()
    switching: SwitchingSection = SwitchingSection()
    observe: ObserveSection = ObserveSection()
    events: list[LinkEventSection] = Field(default=[])
    """Links that fail and come back."""
    traffic: list[Traffic] = Field(default=[])
    """What is run, one item after the other."""

    @cached_property
    def places(self) -> Places:
        """Where its keys stand."""
        return Places("scenario")

    def at(self, places: Places) -> Scenario:
        """Return the scenario, whose keys stand there."""
        self.__dict__["places"] = places
        return self
