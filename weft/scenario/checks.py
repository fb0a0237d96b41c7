"""What no single key of a scenario shows."""

from __future__ import annotations

from collections.abc import Sequence

from weft.engine import CongestionNeeds
from weft.errors import did_you_mean
from weft.quantities.definitions import TIME
from weft.quantities.units import shortest_time, shown
from weft.scenario.model import Scenario
from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem
from weft.scenario.topology import check_fabric
from weft.scenario.traffic import CollectiveTraffic, IncastTraffic, Traffic, TrainingStepTraffic
from weft.topologies.kinds.base import TopologySection
from weft.traffic.aggregation_format import Operation
from weft.traffic.class_reference import is_class_reference, short_reference
from weft.traffic.collectives import Collective, collective_named, collectives
from weft.traffic.extensions import ExtensionError, congestion_needs
from weft.traffic.schedule_nodes import ELEMENT_BYTES, DataType
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.training import GRADIENT_COLLECTIVE


def check_across(scenario: Scenario) -> None:
    """Check a scenario's sections against each other. Raises KeyProblem."""
    fabric = scenario.fabric
    check_fabric(fabric)
    check_options(scenario)
    for index, traffic in enumerate(scenario.traffic):
        _check_traffic(traffic, fabric, f"traffic[{index}]")


def check_options(options: FabricOptions) -> None:
    """Check options against each other. Raises KeyProblem."""
    ecn = options.ecn
    given = [value is not None for value in (ecn.kmin, ecn.kmax, ecn.pmax)]
    if any(given) and not all(given):
        raise KeyProblem("ecn", "kmin, kmax and pmax go together")
    if ecn.kmin is not None and ecn.kmax is not None and ecn.kmax <= ecn.kmin:
        raise KeyProblem("ecn.kmax", f"{ecn.kmax} B must be above kmin, {ecn.kmin} B")
    if not is_class_reference(options.transport.congestion_control):
        check_telemetry(options, congestion_needs(options.transport.congestion_control))
    for number, faults in enumerate(options.faults.variants):
        if bool(faults.delay_probability) != bool(faults.extra_delay):
            raise KeyProblem(
                f"faults.links[{number - 1}]" if number else "faults",
                f"delay_probability ({faults.delay_probability:g}) and extra_delay ({faults.extra_delay} ps) "
                "go together",
            )
    _check_flow_control(options)


def check_telemetry(options: FabricOptions, needs: CongestionNeeds) -> None:
    """Check that packets carry INT if the congestion control needs it. Raises KeyProblem."""
    if needs.telemetry and not options.int_telemetry:
        name = short_reference(options.transport.congestion_control)
        raise KeyProblem(
            "transport.congestion_control", f"{name} follows what INT reports, so it needs int: true"
        )


def _check_flow_control(options: FabricOptions) -> None:
    if not options.credits.classes:
        return
    if options.pfc.classes:
        raise KeyProblem(
            "pfc.classes",
            f"{options.pfc.classes} and credits.classes: {options.credits.classes} exclude each other: a link has "
            "one flow control",
        )
    if not all(faults.keeps_order_and_number for faults in options.faults.variants):
        raise KeyProblem(
            "faults",
            "duplicate and delay_probability do not go with credits, which count what comes, in order; loss and "
            "bit_error_rate do",
        )


def _check_traffic(traffic: Traffic, fabric: TopologySection, key: str) -> None:
    if isinstance(traffic, CollectiveTraffic):
        _check_collective(traffic, fabric, key)
        return
    if isinstance(traffic, TrainingStepTraffic):
        for number, layer in enumerate(traffic.layers):
            if layer.gradients % ELEMENT_BYTES:
                raise KeyProblem(
                    f"{key}.layers[{number}].gradients",
                    f"{layer.gradients} B is not a multiple of {ELEMENT_BYTES}, the size of {traffic.dtype}",
                )
        compute_ps = traffic.optimizer + sum(
            layer.count * (layer.forward + layer.backward) for layer in traffic.layers
        )
        if not TIME.holds(compute_ps):
            raise KeyProblem(
                f"{key}.layers",
                f"the step computes for {shortest_time(compute_ps)} in all (valid: {TIME.range_text})",
            )
        _check_algorithms(collectives()[GRADIENT_COLLECTIVE], traffic.algorithms or (), fabric, key)
        return
    hosts = [f"h{index}" for index in range(fabric.host_count)]
    if len(hosts) < 2:
        raise KeyProblem(key, f"flows need 2 hosts or more, the fabric has {len(hosts)}")
    if isinstance(traffic, IncastTraffic):
        if traffic.incast not in hosts:
            raise KeyProblem(
                f"{key}.incast", f"no host {shown(traffic.incast)}; {did_you_mean(traffic.incast, hosts)}"
            )
        if traffic.plane >= fabric.planes:
            raise KeyProblem(f"{key}.plane", f"{traffic.plane} is not one of 0 to {fabric.planes - 1}")


def _check_collective(traffic: CollectiveTraffic, fabric: TopologySection, key: str) -> None:
    if traffic.data == "mlp-gradients" and traffic.sizes:
        raise KeyProblem(f"{key}.sizes", "mlp-gradients have the size of their model, leave sizes out")
    try:
        collective = collective_named(traffic.collective)
    except ExtensionError as error:
        raise KeyProblem(f"{key}.collective", str(error)) from None
    if traffic.data == "mlp-gradients" and collective.name != GRADIENT_COLLECTIVE:
        raise KeyProblem(
            f"{key}.data", f"mlp-gradients are for an {GRADIENT_COLLECTIVE}, not for {collective.name}"
        )
    ranks = fabric.host_count
    if traffic.root >= ranks:
        raise KeyProblem(f"{key}.root", f"{traffic.root} is not one of the ranks 0 to {ranks - 1}")
    for number, size in enumerate(traffic.sizes):
        if size % ELEMENT_BYTES:
            raise KeyProblem(
                f"{key}.sizes[{number}]",
                f"{size} B is not a multiple of {ELEMENT_BYTES}, the size of {traffic.dtype}",
            )
        least_bytes = collective.least_size_bytes(ranks)
        if size < least_bytes:
            raise KeyProblem(
                f"{key}.sizes[{number}]",
                f"{size} B leave some of {ranks} ranks nothing of the {collective.name} "
                f"(valid: {least_bytes} B or more)",
            )
    _check_algorithms(collective, traffic.algorithms or (), fabric, key, traffic.root)


def _check_algorithms(
    collective: Collective, algorithms: Sequence[str], fabric: TopologySection, key: str, root: int = 0
) -> None:
    spec = CollectiveSpec(
        rank_count=fabric.host_count,
        element_count=0,
        dtype=DataType.INT32,
        operation=Operation.SUM,
        plane_rates_bps=(fabric.host_rate,) * fabric.planes,
        root=root,
        ranks_per_host=fabric.ranks_per_host or 1,
        rank_stride=fabric.hosts_per_leaf if fabric.rail_optimised else 1,
    )
    for number, algorithm in enumerate(algorithms):
        try:
            collective.check(algorithm, spec)
        except ValueError as error:
            raise KeyProblem(f"{key}.algorithms[{number}]", str(error)) from None
