"""From a scenario, or a fabric and options from Python, to the one description of what runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Unpack

from weft.clocks.environment import with_clock
from weft.errors import EnvironmentLacksError
from weft.recording.checks import check_observed
from weft.run.extensions import check_controller, check_transport
from weft.run.traffic_kinds.base import TrafficItem, items_of
from weft.scenario import (
    FabricKeywords,
    FabricOptions,
    Places,
    Scenario,
    fabric_options,
)
from weft.scenario.circuits import check_circuits
from weft.scenario.default_lanes import with_lanes
from weft.scenario.fidelity_checks import check_fidelity, check_fidelity_of_fabric, check_reduction
from weft.scenario.link_checks import check_events, check_int_rates, check_links
from weft.scenario.mtu_checks import check_link_mtu, check_packet
from weft.scenario.places import KeyProblem
from weft.scenario.routing_checks import check_routing
from weft.scenario.tenants import check_hosts_of_tenants, check_promises
from weft.scenario.topology import build_topology
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class RunSpec:
    """All that a run depends on, except the machine. It has been checked, once and for all.

    Attributes:
        name: the scenario's, None where there is none.
        fabric: nodes, links and addresses.
        options: how the fabric is run; the clock is chosen.
        traffic: what is run, one item after the other.
        places: where the scenario's keys stand, for errors that only the running fabric shows.
    """

    name: str | None
    fabric: FabricSpec
    options: FabricOptions
    traffic: tuple[TrafficItem, ...] = ()
    places: Places = field(default=Places("options"), compare=False, repr=False)


def run_spec(scenario: Scenario) -> RunSpec:
    """Return what a scenario describes, checked against its fabric: links, ports, classes of users, flows.

    Raises:
        BadInputError: a key does not go with the fabric; says where it stands, and what would be valid.
        EnvironmentLacksError: a library is missing, or the switches cannot do what is asked for.
    """
    with scenario.places.locating():
        return unlocated_run_spec(scenario)


def unlocated_run_spec(scenario: Scenario, fabric: FabricSpec | None = None) -> RunSpec:
    """As `run_spec`, but what is wrong with a key is a KeyProblem, without the key's place.

    `fabric` is that of `scenario.fabric`, if it has been built before.
    """
    fabric = fabric or build_topology(scenario.fabric)
    spec = RunSpec(
        name=scenario.name,
        fabric=fabric,
        options=with_lanes(with_clock(scenario.options), fabric),
        traffic=items_of(scenario),
        places=scenario.places,
    )
    _check(spec)
    return spec


def fabric_run_spec(fabric: FabricSpec, **options: Unpack[FabricKeywords]) -> RunSpec:
    """Return the description of a fabric whose traffic comes from Python. Raises as `run_spec`."""
    spec = RunSpec(None, fabric, with_lanes(with_clock(fabric_options(**options)), fabric))
    _check(spec)
    return spec


def _check(spec: RunSpec) -> None:
    """Check what neither options nor fabric show alone. Raises KeyProblem, or as `run_spec`."""
    check_transport(spec.options)
    check_controller(spec.options.controller)
    check_link_mtu(spec.options)
    check_fidelity(spec.options)
    check_fidelity_of_fabric(spec.fabric, spec.options)
    for number, traffic in enumerate(spec.traffic):
        for key, item in traffic.with_parts(f"traffic[{number}]"):
            if item.lacking and spec.options.clock == "real":
                raise EnvironmentLacksError(f"{key}.{item.kind}: {item.lacking}")
            name, packet_bytes = item.largest_packet(spec.options.ip_version)
            check_packet(spec.options, f"{key}.{name}", packet_bytes)
        traffic.check_classes(spec.fabric, spec.options.seed)
        traffic.check_fabric(spec.fabric, f"traffic[{number}]")
        _check_services(traffic, spec.options, f"traffic[{number}]")
        if traffic.reduces_in_network:
            check_reduction(spec.options, f"traffic[{number}]")
    check_observed(spec.fabric, spec.options)
    check_links(spec.fabric, spec.options)
    check_events(spec.fabric, spec.options)
    check_hosts_of_tenants(spec.options.tenants, [host.name for host in spec.fabric.hosts])
    check_promises(spec.options.tenants, spec.fabric.fastest_bps)
    watches_links = spec.options.controller.link_watch is not None
    check_circuits(spec.fabric, spec.options.circuits, watches_links)
    check_int_rates(spec.fabric, spec.options)
    check_routing(spec.fabric, spec.options)


def _check_services(item: TrafficItem, options: FabricOptions, key: str) -> None:
    """Check that switches have the services that an item asks. Raises KeyProblem."""
    for service in item.services:
        if service not in options.services:
            raise KeyProblem(
                f"{key}.{item.kind}",
                f"asks switches for the service {service}, which they do not have (services: "
                f"[{', '.join([*options.services, service])}] has them)",
            )
