"""How a fabric is run, apart from its topology: the keys that scenario files and `weft.Fabric` share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, Field

from weft.controller.features.load_balancing import LoadBalancingSettings
from weft.controller.features.telemetry_int import IntSettings
from weft.controller.routing import ROUTING_KINDS
from weft.paths import FABRIC_P4
from weft.quantities.definitions import number, whole
from weft.quantities.example import Example
from weft.scenario.aggregation import AggregationSection
from weft.scenario.circuits import CircuitsSection
from weft.scenario.controller import ControllerOrClass, ControllerSection
from weft.scenario.events import EventSection
from weft.scenario.link_retry import LinkRetrySection
from weft.scenario.memory import BufferSection, CreditsSection, PfcSection, SchedulingSection, TrimmingSection
from weft.scenario.nccl import NcclSection
from weft.scenario.nic import NicSection
from weft.scenario.observe import ObserveSection
from weft.scenario.protocols import ProtocolsSection
from weft.scenario.routing import RoutingSection
from weft.scenario.sections import (
    ControlSection,
    EcnSection,
    FaultsSection,
    FidelitySection,
    SwitchingSection,
)
from weft.scenario.switch_choice import SwitchChoice
from weft.scenario.telemetry import TelemetrySection
from weft.scenario.tenants import TenantName, TenantSection, tenant_settings
from weft.scenario.transport import TransportSection
from weft.scenario.values import FeatureSection, ForFeature, Section, SectionOnUse
from weft.traffic.aggregation_format import LANE_COUNT
from weft.traffic.class_reference import is_class_reference, short_reference
from weft.traffic.transport_settings import PathTraits

Service = Literal["synchronisation", "parameter_cache"]
# Slots of a switch (SLOTS in p4/include/aggregation.p4).
MAX_SLOTS = 4096
# Aggregation trees of a group of ranks in a plane.
MAX_TREES = 64
# Threads that serve a virtual run (kMaxWorkers in engine/time/partitions.hpp).
MAX_WORKERS = 256
CHOSEN_BY_CHANCE_OR_MACHINE = ("observe", "seed", "links", "dilation")
"""Options that may differ between runs that count as alike: records, what chance decides, the machine and the clock."""
_KEYS_IN_RESULTS = {"int_telemetry": "int"}
# Files of results are the same for every number of workers, and however controllers reach the switches.
_NOT_IN_RESULTS = {"workers", "grpc"}
# Costs that nothing pays unless a collective names a protocol, and sections that do nothing by default.
_IN_RESULTS_IF_CHANGED = {"health", "host", "link_retry", "nccl", "protocols", "telemetry", "trimming"}


class FabricOptions(Section):
    """Clock, target, program and faults of a fabric.

    `clock` is None until `weft.clocks.environment.with_clock` has chosen one.
    """

    clock: Literal["real", "virtual"] | None = None
    """`real`: in Mininet. `virtual`: simulated. By default `real` for root."""
    target: Literal["embedded", "bmv2"] = "embedded"
    """Which switch runs the P4 program."""
    links: Literal["veth", "internal"] = "veth"
    """Under the real clock: links between switches as interfaces, or inside the engine."""
    grpc: Literal["unix", "tcp"] = "unix"
    """Under the real clock: how controllers reach the embedded switches. `unix`: a socket of the user who runs the lab.
    `tcp`: a port of the loopback, open to every user of the machine."""
    ip_version: Literal[4, 6] = 4
    """IP version of RoCEv2 and aggregation packets, and of plain hosts' traffic."""
    dilation: Annotated[float, number(1.0, 1e6, example="1000")] = 1000.0
    """Under the real clock: real seconds that an emulated second takes."""
    seed: Annotated[int, whole(0, 2**63 - 1)] = 1
    """Draws everything that is random: traffic, faults, the switches' random choices, and what `hash_seed` draws."""
    hash_seed: Annotated[int, whole(0, 2**63 - 1, example="6")] | None = None
    """Draws how flows are spread over equal paths: the seeds of the switches' hashes, and the source ports that hosts
    choose. By default it is `seed`, so that each seed has other hash collisions. Set it to keep them as they are while
    `seed` or something else changes."""
    workers: Annotated[int, whole(1, MAX_WORKERS)] = 1
    """Threads that serve a virtual run; the results do not depend on it."""
    p4: Annotated[Path, Example("examples/busy_uplinks/uplinks.p4")] = FABRIC_P4
    """The switches' program; relative to the scenario's file. By default Weft's own."""
    programs: Annotated[dict[SwitchChoice, Path], Example("{p0l*: examples/busy_uplinks/uplinks.p4}")] = Field(
        default={}
    )
    """Programs of some switches, in place of `p4`, by name, pattern or role. A name goes before a pattern, a pattern
    before a role."""
    entries: Annotated[
        dict[SwitchChoice, Path],
        Example("{p0l0: examples/own_network/s1-runtime.json}", ("p4=examples/own_network/forward.p4",)),
    ] = Field(default={})
    """Files of table entries, multicast groups and clone sessions, by switch as `programs`; JSON or YAML in the
    schema of p4lang's tutorials. They go before entries of Weft's with the same key."""
    commands: Annotated[
        dict[SwitchChoice, Path],
        Example("{p0l0: examples/own_network/s2-commands.txt}", ("p4=examples/own_network/forward.p4",)),
    ] = Field(default={})
    """Files of simple_switch_CLI's commands, by switch as `programs`; run once the switches hold their entries."""
    compiler: Literal["embedded", "p4c"] = "embedded"
    """Which compiler compiles it."""
    services: list[Service] = Field(default=[])
    """Services of switches for groups of hosts, modules of the program. `synchronisation`: barriers and counters.
    `parameter_cache`: answers in place of a parameter store."""
    mtu_bytes: Literal[256, 512, 1024, 2048, 4096] = Field(1024, alias="mtu")
    """Payload bytes of a full RoCEv2 packet."""
    int_telemetry: Annotated[bool, ForFeature(IntSettings)] = Field(True, alias="int")
    """Data packets carry in-band telemetry (INT), as HPCC needs it."""
    link_mtu_bytes: Annotated[int, whole(1280, 9216)] = Field(9000, alias="link_mtu")
    """Largest packet of a link, from IP or INT's shim on. Larger ones are refused before a run."""
    slots: Annotated[int, whole(1, MAX_SLOTS, example="256")] | None = None
    """Slots of an aggregation job at each switch; by default two bandwidth-delay products, shared out among `trees`,
    or an equal part of a switch's slots where a collective has many jobs."""
    trees: Annotated[int, whole(1, MAX_TREES)] = 1
    """Aggregation trees of each plane, with roots of their own where there are enough, over which data are striped."""
    aggregation: AggregationSection = AggregationSection()
    faults: FaultsSection = FaultsSection()
    ecn: EcnSection = EcnSection()
    control: ControlSection = ControlSection()
    controller: ControllerOrClass = ControllerSection()
    health: Annotated[Section | None, SectionOnUse("weft.scenario.health", "HealthSection")] = None
    routing: RoutingSection = RoutingSection()
    transport: TransportSection = TransportSection()
    fidelity: FidelitySection = FidelitySection()
    nic: NicSection = NicSection()
    host: Annotated[Section | None, SectionOnUse("weft.scenario.host", "HostSection")] = None
    protocols: ProtocolsSection = ProtocolsSection()
    nccl: NcclSection = NcclSection()
    buffer: BufferSection = BufferSection()
    scheduling: SchedulingSection = SchedulingSection()
    trimming: TrimmingSection = TrimmingSection()
    pfc: PfcSection = PfcSection()
    credits: CreditsSection = CreditsSection()
    link_retry: LinkRetrySection = LinkRetrySection()
    switching: SwitchingSection = SwitchingSection()
    observe: ObserveSection = ObserveSection()
    telemetry: TelemetrySection = TelemetrySection()
    circuits: CircuitsSection = CircuitsSection()
    tenants: Annotated[dict[TenantName, TenantSection], ForFeature(tenant_settings)] = Field(default={})
    """Tenants of the fabric, by name; an item of the traffic charges its reductions to its `tenant`."""
    events: list[EventSection] = Field(default=[])
    """Links that fail and come back, and what an operator does."""

    @property
    def macros(self) -> dict[str, str]:
        """Return what the preprocessor of the program is to define."""
        macros = {f"SERVICE_{name.upper()}": "1" for name in sorted(set(self.services))}
        if self.telemetry.is_on:
            macros["INT_MD"] = "1"
        if macro := ROUTING_KINDS.named(self.routing.kind).macro:
            macros[macro] = "1"
        if self.is_notified:
            macros["BOLT"] = "1"
        lanes = self.aggregation.lane_count
        return macros if lanes == LANE_COUNT else macros | {"AGGREGATION_LANES": str(lanes)}

    @property
    def is_notified(self) -> bool:
        """Whether switches notify senders of queues, as a congestion control needs."""
        return bool(self.transport.notified_classes(self.scheduling.data_classes))

    @property
    def hash_seed_in_force(self) -> int:
        """Return the seed of hashes and source ports."""
        return self.seed if self.hash_seed is None else self.hash_seed

    def adapters_round_trip_ps(self, payload_bytes: int) -> int:
        """Return what a packet's way from memory and into memory adds to its round trip, on idle links of hosts."""
        inside_ps = 0
        if self.host is not None:
            from weft.scenario.host import host_section

            section = host_section(self)
            inside_ps = section.round_trip_ps(payload_bytes) if section is not None else 0
        return self.nic.round_trip_ps(payload_bytes) + inside_ps

    @property
    def load_balancing(self) -> LoadBalancingSettings:
        """Return how switches choose among equal next hops."""
        return self.routing.settings(self.transport.retransmission)

    @property
    def of_features(self) -> tuple[object, ...]:
        """Settings of the controller's features, made from these options."""
        return tuple(self._of_features())

    def _of_features(self) -> Iterator[object]:
        for name, field in FabricOptions.model_fields.items():
            value = getattr(self, name)
            if isinstance(value, FeatureSection):
                yield from value.of_features(self)
            yield from (each.settings(value) for each in field.metadata if isinstance(each, ForFeature))

    @property
    def reorders(self) -> bool:
        """Whether switches send packets of a flow over several paths, so that they overtake each other."""
        return self.load_balancing.sprays or self.routing.has_intermediates

    @property
    def keeps_flows_on_paths(self) -> bool:
        """Whether all packets of a connection take the same path, which no other traffic can change."""
        by_flow = self.load_balancing.mode in ("flow", "flow_and_queue_pair")
        return by_flow and not self.routing.has_intermediates and self.transport.path == "flow"

    @property
    def lossless_classes(self) -> tuple[int, ...]:
        """Classes that lose nothing under congestion on any link, by PFC or credits."""
        by_credits = self.credits.classes if self.credits.links is None else ()
        return tuple(sorted({*self.pfc.classes, *by_credits}))

    def path_traits(self, least_timeout_ps: int) -> PathTraits:
        """Return what hosts know of all paths; `least_timeout_ps`: how long a full queue takes to drain."""
        return PathTraits(least_timeout_ps, self.reorders, self.lossless_classes)

    @property
    def options(self) -> FabricOptions:
        """Return these options alone, without what a scenario adds; they have been checked."""
        values = {name: getattr(self, name) for name in FabricOptions.model_fields}
        return FabricOptions.model_construct(self.model_fields_set & values.keys(), **values)

    def changed(self, **changes: Any) -> FabricOptions:
        """Return the options with some of them changed to values that are valid, which is not checked again."""
        return self.options.model_copy(update=changes)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a result's header: all that it depends on."""
        return {
            _KEYS_IN_RESULTS.get(name, name): _plain(getattr(self, name))
            for name, field in FabricOptions.model_fields.items()
            if name not in _NOT_IN_RESULTS
            and not (name in _IN_RESULTS_IF_CHANGED and getattr(self, name) == field.default)
        }


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
    health: Section | None
    routing: RoutingSection | None
    transport: TransportSection | None
    fidelity: FidelitySection | None
    nic: NicSection | None
    host: Section | None
    protocols: ProtocolsSection | None
    nccl: NcclSection | None
    buffer: BufferSection | None
    scheduling: SchedulingSection | None
    trimming: TrimmingSection | None
    pfc: PfcSection | None
    credits: CreditsSection | None
    link_retry: LinkRetrySection | None
    switching: SwitchingSection | None
    observe: ObserveSection | None
    telemetry: TelemetrySection | None
    circuits: CircuitsSection | None
    tenants: dict[TenantName, TenantSection] | None
    events: list[EventSection] | None


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, BaseModel):
        return {name: _plain(each) for name, each in value.model_dump().items()}
    if isinstance(value, str) and is_class_reference(value):
        return short_reference(value)
    return value.name if isinstance(value, Path) else value
