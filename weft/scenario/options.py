"""How a fabric is to be run, apart from its topology."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from weft.paths import FABRIC_P4
from weft.scenario import (
    BufferSection,
    ControlSection,
    CreditsSection,
    EcnSection,
    FaultsSection,
    LinkEventSection,
    NicSection,
    ObserveSection,
    PfcSection,
    Scenario,
    SchedulingSection,
    SwitchingSection,
    TransportSection,
    parse_scenario,
)
from weft.traffic.class_reference import is_class_reference, short_reference

# Where an option is called otherwise than in a scenario file, and in results.
_SCENARIO_KEYS = {"mtu_bytes": "mtu", "int_telemetry": "int"}
_KEYS_IN_RESULTS = {"int_telemetry": "int"}
# Files of results are the same for every number of workers, and however controllers reach the switches.
_NOT_IN_RESULTS = {"workers", "grpc"}


@dataclass(frozen=True)
class FabricOptions:
    """Clock, target, program and faults of a fabric; the defaults are the scenario file's.

    `workers`: threads that serve a virtual run, for the same outcome.
    Without a clock, that of `weft.clocks.environment.with_clock` is taken.
    """

    clock: Literal["real", "virtual"] | None = None
    target: Literal["embedded", "bmv2"] = "embedded"
    links: Literal["veth", "internal"] = "veth"
    grpc: Literal["unix", "tcp"] = "unix"
    ip_version: Literal[4, 6] = 4
    dilation: float = 1000.0
    seed: int = 1
    workers: int = 1
    p4: Path = FABRIC_P4
    compiler: Literal["embedded", "p4c"] = "embedded"
    mtu_bytes: Literal[256, 512, 1024, 2048, 4096] = 1024
    int_telemetry: bool = True
    slots: int | None = None
    faults: FaultsSection = field(default_factory=FaultsSection)
    ecn: EcnSection = field(default_factory=EcnSection)
    control: ControlSection = field(default_factory=ControlSection)
    transport: TransportSection = field(default_factory=TransportSection)
    nic: NicSection = field(default_factory=NicSection)
    buffer: BufferSection = field(default_factory=BufferSection)
    scheduling: SchedulingSection = field(default_factory=SchedulingSection)
    pfc: PfcSection = field(default_factory=PfcSection)
    credits: CreditsSection = field(default_factory=CreditsSection)
    switching: SwitchingSection = field(default_factory=SwitchingSection)
    observe: ObserveSection = field(default_factory=ObserveSection)
    events: list[LinkEventSection] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Hold every value to the scenario file's rules; raises BadInputError."""
        if isinstance(self.p4, str):
            object.__setattr__(self, "p4", Path(self.p4))
        parse_scenario({_scenario_key(name): value for name, value in vars(self).items()}, "options")

    @classmethod
    def of(cls, scenario: Scenario) -> FabricOptions:
        """Return a scenario's options."""
        keys = {model.alias or name: name for name, model in Scenario.model_fields.items()}
        return cls(**{each.name: getattr(scenario, keys[_scenario_key(each.name)]) for each in fields(cls)})

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a result's header: all that it depends on."""
        return {
            _KEYS_IN_RESULTS.get(each.name, each.name): _plain(getattr(self, each.name))
            for each in fields(self)
            if each.name not in _NOT_IN_RESULTS
        }


def _scenario_key(name: str) -> str:
    return _SCENARIO_KEYS.get(name, name)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, BaseModel):
        return {name: _plain(each) for name, each in value.model_dump().items()}
    if isinstance(value, str) and is_class_reference(value):
        return short_reference(value)
    return value.name if isinstance(value, Path) else value
