"""Makes the checked description of a run from a scenario, or from a fabric and options in Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Unpack

from weft.clocks.environment import with_clock
from weft.clocks.marking import ecn_settings
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
from weft.scenario.checks import check_ev_count, check_notifications, check_storage_network
from weft.scenario.circuits import check_circuits
from weft.scenario.default_lanes import with_lanes
from weft.scenario.fast_forward_checks import check_fast_forward
from weft.scenario.fidelity_checks import check_fidelity, check_fidelity_of_fabric, check_reduction
from weft.scenario.link_checks import check_events, check_int_rates, check_links, check_outages
from weft.scenario.lossless_lanes import with_lossless_lanes
from weft.scenario.mtu_checks import check_link_mtu, check_packet
from weft.scenario.places import KeyProblem
from weft.scenario.routing_checks import check_routing
from weft.scenario.telemetry import check_telemetry
from weft.scenario.tenant_shares import with_tenant_shares
from weft.scenario.tenants import check_hosts_of_tenants, check_promises
from weft.scenario.topology import build_topology
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class RunSpec:
    """Everything that a run depends on, except the machine. It has been checked.

    Attributes:
        name: the scenario's name, None without one.
        fabric: nodes, links and addresses.
        options: options of the fabric; the clock is chosen.
        traffic: items to run, one after the other.
        places: where the scenario's keys are, for errors found only on the running fabric.
    """

    name: str | None
    fabric: FabricSpec
    options: FabricOptions
    traffic: tuple[TrafficItem, ...] = ()
    places: Places = field(default=Places("options"), compare=False, repr=False)


def run_spec(scenario: Scenario) -> RunSpec:
    """Return a scenario's description, checked against its fabric: links, ports, users' classes, flows.

    Raises:
        BadInputError: a key does not fit the fabric; with its place and valid values.
        EnvironmentLacksError: a library is missing, or the switches lack a requested feature.
    """
    with scenario.places.locating():
        return unlocated_run_spec(scenario)


def unlocated_run_spec(scenario: Scenario, fabric: FabricSpec | None = None) -> RunSpec:
    """Return as `run_spec`, but raise KeyProblem, without the key's place, for errors in keys.

    `fabric` is built from `scenario.fabric` unless given.
    """
    fabric = fabric or build_topology(scenario.fabric)
    spec = RunSpec(
        name=scenario.name,
        fabric=fabric,
        options=_completed(scenario.options, fabric),
        traffic=items_of(scenario),
        places=scenario.places,
    )
    _check(spec)
    return spec


def fabric_run_spec(fabric: FabricSpec, **options: Unpack[FabricKeywords]) -> RunSpec:
    """Return the description of a fabric with traffic from Python. Raises as `run_spec`."""
    spec = RunSpec(None, fabric, _completed(fabric_options(**options), fabric))
    _check(spec)
    return spec


def _completed(options: FabricOptions, fabric: FabricSpec) -> FabricOptions:
    """Return options with what they leave to the machine and the fabric."""
    return with_tenant_shares(with_lossless_lanes(with_lanes(with_clock(options), fabric), fabric), fabric)


def _check(spec: RunSpec) -> None:
    """Check options, fabric and traffic against each other. Raises KeyProblem, or as `run_spec`."""
    check_transport(spec.options)
    check_controller(spec.options.controller)
    check_link_mtu(spec.options)
    check_notifications(spec.options)
    check_ev_count(spec.options, spec.fabric.training_nics)
    check_storage_network(spec.fabric, spec.options)
    check_fidelity(spec.options)
    check_fast_forward(spec.options, spec.fabric.training_nics)
    check_fidelity_of_fabric(spec.fabric, spec.options, lambda: ecn_settings(spec.fabric, spec.options))
    for number, traffic in enumerate(spec.traffic):
        for key, item in traffic.with_parts(f"traffic[{number}]"):
            if item.lacking and spec.options.clock == "real":
                raise EnvironmentLacksError(f"{item.lacking}", place=f"{key}.{item.kind}")
            name, packet_bytes = item.largest_packet(spec.options.ip_version)
            check_packet(spec.options, f"{key}.{name}", packet_bytes)
            if spec.options.host is not None and item.copies_key:
                raise KeyProblem(f"{key}.{item.copies_key}", "`host` has the way of all transfers", valid="one of them")
        traffic.check_classes(spec.fabric, spec.options.seed)
        traffic.check_fabric(spec.fabric, f"traffic[{number}]")
        _check_services(traffic, spec.options, f"traffic[{number}]")
        if traffic.reduces_in_network(spec.fabric):
            check_reduction(spec.options, f"traffic[{number}]")
    check_observed(spec.fabric, spec.options)
    check_links(spec.fabric, spec.options)
    check_events(spec.fabric, spec.options)
    check_outages(spec.options)
    check_hosts_of_tenants(spec.options.tenants, [host.name for host in spec.fabric.hosts])
    check_promises(spec.options.tenants, spec.fabric.fastest_bps)
    watches_links = spec.options.controller.link_watch is not None
    check_circuits(spec.fabric, spec.options.circuits, watches_links)
    if spec.options.health is not None:
        from weft.scenario.health import check_health  # it costs nothing where it is not used

        check_health(spec.fabric, spec.options)
    if spec.options.host is not None:
        from weft.scenario.host import check_host

        check_host(spec.fabric, spec.options)
    check_int_rates(spec.fabric, spec.options)
    check_routing(spec.fabric, spec.options)
    check_telemetry(spec.fabric, spec.options)


def _check_services(item: TrafficItem, options: FabricOptions, key: str) -> None:
    """Check that switches have the services that an item uses. Raises KeyProblem if one is missing."""
    for service in item.services:
        if service not in options.services:
            raise KeyProblem(
                f"{key}.{item.kind}",
                f"asks switches for the service {service}, which they do not have (services: "
                f"[{', '.join([*options.services, service])}] has them)",
            )
