"""The whole of a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field

from weft.paths import FABRIC_P4
from weft.scenario.events import LinkEventSection
from weft.scenario.memory import BufferSection, CreditsSection, PfcSection, SchedulingSection
from weft.scenario.nic import NicSection
from weft.scenario.observe import ObserveSection
from weft.scenario.sections import ControlSection, EcnSection, FabricSection, FaultsSection
from weft.scenario.switching import SwitchingSection
from weft.scenario.traffic import Traffic
from weft.scenario.transport import TransportSection
from weft.scenario.values import Section

# Slots of a switch (SLOTS in p4/include/aggregation.p4).
MAX_SLOTS = 4096


# Threads that serve a virtual run (kMaxWorkers in engine/src/partitions.hpp).
MAX_WORKERS = 256


class Scenario(Section):
    """All that a run depends on, except the machine. What comes out does not depend on `workers`."""

    name: str = Field("fabric", pattern=r"\A[a-z0-9][a-z0-9-]{0,40}\z")
    clock: Literal["real", "virtual"] | None = None
    target: Literal["embedded", "bmv2"] = "embedded"
    links: Literal["veth", "internal"] = "veth"
    ip_version: Literal[4, 6] = 4
    dilation: float = Field(1000.0, ge=1.0, le=1e6)
    seed: int = Field(1, ge=0, lt=2**63)
    workers: int = Field(1, ge=1, le=MAX_WORKERS)
    p4: Path = FABRIC_P4
    compiler: Literal["embedded", "p4c"] = "embedded"
    mtu: Literal[256, 512, 1024, 2048, 4096] = 1024
    int_telemetry: bool = Field(True, alias="int")
    slots: int | None = Field(None, ge=1, le=MAX_SLOTS)
    fabric: FabricSection = FabricSection()
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
    traffic: list[Traffic] = Field(default=[])

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
