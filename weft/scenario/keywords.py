"""The options of a fabric as Python's keyword arguments: spelled out once, for editors, type checkers and help()."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from weft.errors import BadInputError
from weft.scenario.aggregation import AggregationSection
from weft.scenario.circuits import CircuitsSection
from weft.scenario.controller import ControllerSection
from weft.scenario.events import EventSection
from weft.scenario.memory import BufferSection, CreditsSection, PfcSection, SchedulingSection
from weft.scenario.nic import NicSection
from weft.scenario.observe import ObserveSection
from weft.scenario.options import FabricOptions, Service
from weft.scenario.parsing import parse_options
from weft.scenario.routing import RoutingSection
from weft.scenario.sections import (
    ControlSection,
    EcnSection,
    FaultsSection,
    FidelitySection,
    SwitchingSection,
)
from weft.scenario.tenants import TenantName, TenantSection
from weft.scenario.transport import TransportSection

_Function = TypeVar("_Function", bound=Callable[..., Any])


class FabricKeywords(TypedDict, total=False):
    """The fields of `FabricOptions`. None stands for the default of a section."""

    clock: Literal["real", "virtual"] | None
    target: Literal["embedded", "bmv2"]
    links: Literal["veth", "internal"]
    grpc: Literal["unix", "tcp"]
    ip_version: Literal[4, 6]
    dilation: float
    seed: int
    hash_seed: int | None
    workers: int
    p4: str | Path
    programs: dict[str, Path]
    entries: dict[str, Path]
    commands: dict[str, Path]
    compiler: Literal["embedded", "p4c"]
    services: list[Service]
    mtu_bytes: Literal[256, 512, 1024, 2048, 4096]
    int_telemetry: bool
    link_mtu_bytes: int
    slots: int | None
    trees: int
    aggregation: AggregationSection | None
    faults: FaultsSection | None
    ecn: EcnSection | None
    control: ControlSection | None
    controller: ControllerSection | None
    routing: RoutingSection | None
    transport: TransportSection | None
    fidelity: FidelitySection | None
    nic: NicSection | None
    buffer: BufferSection | None
    scheduling: SchedulingSection | None
    pfc: PfcSection | None
    credits: CreditsSection | None
    switching: SwitchingSection | None
    observe: ObserveSection | None
    circuits: CircuitsSection | None
    tenants: dict[TenantName, TenantSection] | None
    events: list[EventSection] | None


class FabricMark(FabricKeywords, total=False):
    """Keywords of the mark `fabric`: the parameters of `weft.topologies.leaf_spine`, and the options of a fabric."""

    planes: int
    leaves: int
    spines: int
    hosts_per_leaf: int
    host_rate_bps: float
    fabric_rate_bps: float | None
    oversubscription: float | None
    delay_ps: int
    queue_capacity_bytes: int | None


def fabric_options(**given: Unpack[FabricKeywords]) -> FabricOptions:
    """Return checked options.

    Raises:
        BadInputError: an unknown option, or a value that is not valid; says what would be valid.
    """
    for name in given:
        if name not in FabricOptions.model_fields:
            valid = ", ".join(FabricOptions.model_fields)
            raise BadInputError(f"unknown option '{name}'; valid options: {valid}")
    keys = {name: field.alias or name for name, field in FabricOptions.model_fields.items()}
    return parse_options({keys[name]: value for name, value in given.items() if value is not None})


def with_fabric_keywords(function: _Function) -> _Function:
    """Give a function that takes `**options: Unpack[FabricKeywords]` a signature with each of them, for help()."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=FabricOptions.model_fields[name].get_default(),
            annotation=annotation,
        )
        for name, annotation in FabricKeywords.__annotations__.items()
    ]
    function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return function
