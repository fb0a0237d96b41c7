"""What no single key of a scenario shows."""

from __future__ import annotations

from collections.abc import Sequence

from traffic.aggregation_format import Operation
from traffic.schedule_nodes import ELEMENT_BYTES, DataType
from traffic.schedules import CollectiveSpec, check_algorithm
from weft.errors import BadInputError, did_you_mean
from weft.scenario.model import Scenario
from weft.scenario.sections import FabricSection
from weft.scenario.traffic import CollectiveTraffic, IncastTraffic, Traffic, TrainingStepTraffic


def check_across(scenario: Scenario, place: str) -> None:
    """Check a scenario's sections against each other. Raises BadInputError."""
    fabric = scenario.fabric
    if fabric.leaves > 1 and fabric.spines == 0:
        raise BadInputError(
            f"{place}: fabric.spines: 0 cannot join {fabric.leaves} leaves; at least 1 is needed"
        )
    _check_tiers(fabric, f"{place}: fabric")
    _check_ranks(fabric, f"{place}: fabric")
    ecn = scenario.ecn
    given = [value is not None for value in (ecn.kmin, ecn.kmax, ecn.pmax)]
    if any(given) and not all(given):
        raise BadInputError(f"{place}: ecn: kmin, kmax and pmax go together")
    if ecn.kmin is not None and ecn.kmax is not None and ecn.kmax <= ecn.kmin:
        raise BadInputError(f"{place}: ecn.kmax: {ecn.kmax} B must be above kmin, {ecn.kmin} B")
    if scenario.transport.congestion_control == "hpcc" and not scenario.int_telemetry:
        raise BadInputError(
            f"{place}: transport.congestion_control: hpcc follows what INT tells; int must be true"
        )
    for number, faults in enumerate(scenario.faults.variants):
        if bool(faults.delay_probability) != bool(faults.extra_delay):
            of_links = f".links[{number - 1}]" if number else ""
            raise BadInputError(
                f"{place}: faults{of_links}: delay_probability ({faults.delay_probability:g}) and extra_delay "
                f"({faults.extra_delay} ps) go together"
            )
    _check_flow_control(scenario, place)
    for index, traffic in enumerate(scenario.traffic):
        _check_traffic(traffic, fabric, f"{place}: traffic[{index}]")


def _check_flow_control(scenario: Scenario, place: str) -> None:
    if not scenario.credits.classes:
        return
    if scenario.pfc.classes:
        raise BadInputError(
            f"{place}: pfc.classes: {scenario.pfc.classes} and credits.classes: {scenario.credits.classes} exclude "
            "each other: a link has one flow control"
        )
    if not all(faults.keeps_order_and_number for faults in scenario.faults.variants):
        raise BadInputError(
            f"{place}: faults: duplicate and delay_probability do not go with credits, which count what comes, in "
            "order; loss and bit_error_rate do"
        )


def _check_tiers(fabric: FabricSection, place: str) -> None:
    if fabric.pods is None:
        for name in ("cores_per_spine", "core_rate"):
            if getattr(fabric, name) is not None:
                raise BadInputError(f"{place}.{name}: {getattr(fabric, name)} means nothing without pods")
        return
    if fabric.spines == 0:
        raise BadInputError(f"{place}.spines: 0 cannot join the leaves of a pod; at least 1 is needed")
    if fabric.oversubscription is not None:
        raise BadInputError(
            f"{place}.oversubscription: {fabric.oversubscription:g} is of two tiers; with pods give fabric_rate and "
            "core_rate"
        )


def _check_ranks(fabric: FabricSection, place: str) -> None:
    if fabric.ranks_per_host is None:
        for name in ("rail_optimised", "scale_up"):
            if getattr(fabric, name):
                raise BadInputError(f"{place}.{name} means nothing without ranks_per_host")
        return
    leaves = (fabric.pods or 1) * fabric.leaves
    if fabric.rail_optimised and leaves % fabric.ranks_per_host:
        raise BadInputError(
            f"{place}.rail_optimised: {leaves} leaves are not whole blocks of {fabric.ranks_per_host} rails, "
            "one for each rank of a host"
        )


def _check_traffic(traffic: Traffic, fabric: FabricSection, place: str) -> None:
    if isinstance(traffic, CollectiveTraffic):
        _check_collective(traffic, fabric, place)
        return
    if isinstance(traffic, TrainingStepTraffic):
        for number, layer in enumerate(traffic.layers):
            if layer.gradients % ELEMENT_BYTES:
                raise BadInputError(
                    f"{place}.layers[{number}].gradients: {layer.gradients} B is not a multiple of {ELEMENT_BYTES}, "
                    f"the size of {traffic.dtype}"
                )
        _check_algorithms("allreduce", traffic.algorithms or (), fabric, place)
        return
    hosts = [f"h{index}" for index in range(fabric.host_count)]
    if len(hosts) < 2:
        raise BadInputError(f"{place}: flows need 2 hosts or more, the fabric has {len(hosts)}")
    if isinstance(traffic, IncastTraffic):
        if traffic.incast not in hosts:
            raise BadInputError(
                f"{place}.incast: no host '{traffic.incast}'; {did_you_mean(traffic.incast, hosts)}"
            )
        if traffic.plane >= fabric.planes:
            raise BadInputError(f"{place}.plane: {traffic.plane} is not one of 0 to {fabric.planes - 1}")


def _check_collective(traffic: CollectiveTraffic, fabric: FabricSection, place: str) -> None:
    if traffic.data == "mlp-gradients" and traffic.sizes:
        raise BadInputError(f"{place}.sizes: mlp-gradients have the size of their model, leave sizes out")
    if traffic.data == "mlp-gradients" and traffic.collective != "allreduce":
        raise BadInputError(f"{place}.data: mlp-gradients are for an allreduce, not for {traffic.collective}")
    ranks = fabric.host_count
    for size in traffic.sizes:
        if size % ELEMENT_BYTES:
            raise BadInputError(
                f"{place}.sizes: {size} B is not a multiple of {ELEMENT_BYTES}, the size of {traffic.dtype}"
            )
        if traffic.collective in ("reducescatter", "allgather", "alltoall") and size < ranks * ELEMENT_BYTES:
            raise BadInputError(
                f"{place}.sizes: {size} B leave some of {ranks} ranks nothing of the {traffic.collective} "
                f"(valid: {ranks * ELEMENT_BYTES} B or more)"
            )
    _check_algorithms(traffic.collective, traffic.algorithms or (), fabric, place, traffic.root)


def _check_algorithms(
    collective: str, algorithms: Sequence[str], fabric: FabricSection, place: str, root: int = 0
) -> None:
    try:
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
        for algorithm in algorithms:
            check_algorithm(collective, algorithm, spec)
    except ValueError as error:
        raise BadInputError(f"{place}: {error}") from None
