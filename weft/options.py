"""How a fabric is to be run, apart from its topology."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from weft.paths import FABRIC_P4
from weft.scenario import ControlSection, EcnSection, FaultsSection, Scenario, parse_scenario


@dataclass(frozen=True)
class FabricOptions:
    """Clock, target, program and faults of a fabric; the defaults are the scenario file's.

    Without a clock, that of `weft.environment.with_clock` is taken.
    """

    clock: Literal["real", "virtual"] | None = None
    target: Literal["embedded", "bmv2"] = "embedded"
    links: Literal["veth", "internal"] = "veth"
    ip_version: Literal[4, 6] = 4
    dilation: float = 1000.0
    seed: int = 1
    p4: Path = FABRIC_P4
    compiler: Literal["embedded", "p4c"] = "embedded"
    mtu_bytes: Literal[256, 512, 1024, 2048, 4096] = 1024
    int_telemetry: bool = True
    slots: int | None = None
    faults: FaultsSection = field(default_factory=FaultsSection)
    ecn: EcnSection = field(default_factory=EcnSection)
    control: ControlSection = field(default_factory=ControlSection)

    def __post_init__(self) -> None:
        """Hold every value to the scenario file's rules; raises BadInputError."""
        names = {"mtu_bytes": "mtu", "int_telemetry": "int"}
        parse_scenario({names.get(name, name): value for name, value in vars(self).items()}, "options")

    @classmethod
    def of(cls, scenario: Scenario) -> FabricOptions:
        """Return a scenario's options."""
        return cls(
            clock=scenario.clock,
            target=scenario.target,
            links=scenario.links,
            ip_version=scenario.ip_version,
            dilation=scenario.dilation,
            seed=scenario.seed,
            p4=scenario.p4,
            compiler=scenario.compiler,
            mtu_bytes=scenario.mtu,
            int_telemetry=scenario.int_telemetry,
            slots=scenario.slots,
            faults=scenario.faults,
            ecn=scenario.ecn,
            control=scenario.control,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a result's header."""
        return {
            "clock": self.clock,
            "target": self.target,
            "links": self.links,
            "ip_version": self.ip_version,
            "dilation": self.dilation,
            "seed": self.seed,
            "p4": self.p4.name,
            "compiler": self.compiler,
            "mtu_bytes": self.mtu_bytes,
            "int": self.int_telemetry,
            "slots": self.slots,
            "faults": self.faults.model_dump(),
            "ecn": self.ecn.model_dump(),
            "control": self.control.model_dump(),
        }
