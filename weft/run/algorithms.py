"""Checks which algorithms of a collective can run on a fabric."""

from __future__ import annotations

from collections.abc import Sequence

from weft.clocks.lab import Progress
from weft.controller.errors import JobError
from weft.controller.failures import NO_FAILURES
from weft.controller.trees import plan_tree
from weft.errors import BadInputError, translated
from weft.run.collectives import collective_spec
from weft.run.jobs import intact_places
from weft.run.reducing_groups import groups_of
from weft.scenario.places import KeyProblem
from weft.topologies import FabricSpec, TopologyError
from weft.topologies.kinds.base import TopologySection
from weft.traffic.aggregation_format import Operation
from weft.traffic.class_reference import is_class_reference
from weft.traffic.collectives import AUTO, CHOICES, COLLECTIVE_KINDS, NCCL, Collective, SaysIfScaleUp
from weft.traffic.data_types import DataType
from weft.traffic.jobs import CollectiveCall
from weft.traffic.jobs.placing import PlacedCall, placed_call
from weft.traffic.schedules import CollectiveSpec, peers_of

_ELEMENTS_OF_A_CHUNK = 64
"""Smallest chunk of a rank that gives each plane a share (`weft.traffic.striping`)."""


def objections(
    topology: FabricSpec, collective: Collective, ranks: Sequence[int] | None = None, lanes_for: str = ""
) -> dict[str, str]:
    """Return by algorithm why it cannot run on the fabric without failures, "" if it can.

    Algorithms that do not suit the number of ranks or the hosts are omitted. For a group, given by `ranks`, all
    algorithms are included and paths are not checked. `lanes_for` as of `Collective.check`.
    """
    if ranks is not None:
        names = [each.name for each in collective.algorithms]
        return {name: group_objection(collective, name, ranks, topology) for name in names}
    names = collective.suitable(_spec(topology, collective, 0), lanes_for)
    return {name: _objection(topology, collective, name) for name in names}


def _spec(topology: FabricSpec, collective: Collective, element_count: int) -> CollectiveSpec:
    return collective_spec(topology, collective, collective.algorithms[0].name, element_count, "int32")


def _objection(topology: FabricSpec, collective: Collective, algorithm: str) -> str:
    spec = _spec(topology, collective, 0)
    chosen = collective.algorithm(algorithm).on(spec)
    if chosen.in_network:
        groups = groups_of(spec, chosen)
        return next(filter(None, (_objection_to_trees(topology, group.ranks) for group in groups)), "")
    return _missing_path(topology, collective, algorithm)


def _objection_to_trees(topology: FabricSpec, ranks: Sequence[int] | None = None) -> str:
    chosen = range(topology.rank_count) if ranks is None else ranks
    hosts = [topology.hosts[rank].name for rank in chosen]
    try:
        for plane in topology.training_planes:
            for place in range(len(topology.nics_of_planes[plane])):
                plan_tree(topology, plane, hosts, NO_FAILURES, place=place)
    except JobError as error:
        return str(error)
    return ""


def _missing_path(topology: FabricSpec, collective: Collective, algorithm: str) -> str:
    # A user's algorithm may need other sizes; its run reports missing paths.
    if topology.joins_all_hosts or is_class_reference(collective.reference):
        return ""
    spec = _spec(topology, collective, topology.rank_count * topology.training_nics * _ELEMENTS_OF_A_CHUNK)
    schedules = [collective.schedule(algorithm, spec, rank) for rank in range(spec.rank_count)]
    try:
        for rank, channel in peers_of(schedules):
            if not channel.is_scale_up:
                topology.relay(rank, channel.peer, channel.plane)
    except TopologyError as error:
        return str(error)
    return ""


def suitable(topology: FabricSpec, collective: Collective, progress: Progress, lanes_for: str = "") -> list[str]:
    """Return the algorithms of a collective that can run on a fabric; report why others cannot to `progress`."""
    found = objections(topology, collective, lanes_for=lanes_for)
    for name, objection in found.items():
        if objection:
            progress(f"{collective.title or collective.name}, {name} left out: {objection}")
    return [name for name, objection in found.items() if not objection]


def check_group(
    collective: Collective,
    algorithms: Sequence[str],
    ranks: Sequence[int],
    topology: FabricSpec,
    root: int,
    key: str,
) -> None:
    """Check that a traffic item's algorithms can run on some ranks of a fabric.

    Raises:
        KeyProblem: one of `key`.algorithms cannot, or the root is outside the ranks.
    """
    if root >= len(ranks):
        raise KeyProblem(f"{key}.root", f"{root} is not one of the ranks 0 to {len(ranks) - 1}")
    for number, name in enumerate(algorithms):
        if name == AUTO:
            continue
        if name == NCCL:
            name = collective.algorithms[0].name
        if objection := group_objection(collective, name, ranks, topology, root):
            raise KeyProblem(f"{key}.algorithms[{number}]", objection)


def group_objection(
    collective: Collective, algorithm: str, ranks: Sequence[int], topology: FabricSpec, root: int = 0
) -> str:
    """Return why an algorithm cannot run on some ranks of a fabric, "" if it can."""
    try:
        placed = placed_group(CollectiveCall(collective.reference, 0, algorithm, root=root), ranks, topology)
    except BadInputError as error:
        return str(error)
    return _objection_to_trees(topology, ranks) if placed.is_in_network else ""


def placed_group(call: CollectiveCall, ranks: Sequence[int], topology: FabricSpec) -> PlacedCall:
    """Return how some ranks of a fabric carry out a call. Raises BadInputError if they cannot."""
    places = intact_places(topology)
    with translated(ValueError, BadInputError):
        return placed_call(call, [places.hosts[rank] for rank in ranks], places)


def any_in_network(collective: Collective, algorithms: Sequence[str], fabric: SaysIfScaleUp | None = None) -> bool:
    """Return whether a fabric's switches reduce in one of these algorithms, not counting `auto` and `nccl`.

    Without a fabric: whether some fabric's switches do.
    """
    return any(collective.algorithm(name).on(fabric).in_network for name in algorithms if name not in CHOICES)


def may_reduce(collective: Collective, algorithms: Sequence[str]) -> bool:
    """Return whether switches reduce in one of these algorithms, or may in the choice of `auto` or `nccl`."""
    can = any(each.in_network for each in collective.algorithms)
    return any_in_network(collective, algorithms) or (can and not set(CHOICES).isdisjoint(algorithms))


def is_in_network(algorithm: str, fabric: SaysIfScaleUp | None = None) -> bool:
    """Return whether switches reduce in an algorithm of this name, of any collective; `fabric`: as above."""
    return any(
        each.on(fabric).in_network
        for collective in COLLECTIVE_KINDS.values()
        for each in collective.algorithms
        if each.name == algorithm
    )


def check_algorithms(
    collective: Collective,
    algorithms: Sequence[str],
    fabric: TopologySection,
    key: str,
    root: int = 0,
    dtype: DataType = DataType.FLOAT32,
    operation: Operation = Operation.SUM,
    lanes_for: str = "",
) -> None:
    """Check that a traffic item's algorithms can run; `lanes_for` as of `Collective.check`.

    Raises:
        KeyProblem: one of `key`.algorithms cannot, or no collective can with this number of ranks.
    """
    with translated(ValueError, KeyProblem, "fabric"):
        spec = CollectiveSpec(
            rank_count=fabric.rank_count,
            element_count=0,
            dtype=dtype,
            operation=operation,
            plane_rates_bps=(fabric.host_rate,) * fabric.nics_per_host,
            root=root,
            ranks_per_host=fabric.ranks_per_host or 1,
            rank_stride=fabric.endpoints_per_leaf if fabric.rail_optimised else 1,
            is_scale_up=fabric.is_scale_up,
            host_reductions=fabric.host_reductions,
        )
    for number, algorithm in enumerate(algorithms):
        with translated(ValueError, KeyProblem, f"{key}.algorithms[{number}]"):
            if algorithm not in CHOICES:
                collective.check(algorithm, spec, lanes_for)


def check_paths(
    collective: Collective, algorithms: Sequence[str] | None, topology: FabricSpec, key: str, lanes_for: str = ""
) -> None:
    """Check that the fabric has the links and NICs that an item's algorithms need; `lanes_for` as of `suitable`.

    Raises:
        KeyProblem: they are missing for an algorithm in `key`.algorithms, or for all if it is not given or has `auto`.
    """
    found = objections(topology, collective, lanes_for=lanes_for)
    special_names = {each.general_name: each.name for each in collective.algorithms if each.general_name}
    for number, algorithm in enumerate(algorithms or ()):
        if algorithm == NCCL:
            algorithm = collective.algorithms[0].name
        listed = algorithm if algorithm in found else special_names.get(algorithm, "")
        if objection := found.get(listed):
            raise KeyProblem(f"{key}.algorithms[{number}]", objection)
    if (algorithms is None or AUTO in algorithms) and all(found.values()):
        reasons = [f"{name}: {objection}" for name, objection in found.items()]
        why = "; ".join(reasons) or collective.unsuitable(_spec(topology, collective, 0))
        raise KeyProblem(key, f"no algorithm of {collective.name} can run on the fabric: {why}")
