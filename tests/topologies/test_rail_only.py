"""Rails that meet inside hosts alone: what is joined, what is refused, and a collective that needs no more."""

from __future__ import annotations

import numpy as np
import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.run.collectives import CollectiveRequest
from weft.scenario import parse_scenario
from weft.topologies import FabricSpec, TopologyError, with_scale_up
from weft.topologies.kinds.base import ScaleUpSection
from weft.topologies.kinds.rail_only import RailOnlySection, rail_only


def joined(fabric: FabricSpec) -> set[tuple[int, int]]:
    """Pairs of ranks that have a path."""
    pairs = set()
    for source in range(len(fabric.hosts)):
        for destination in range(len(fabric.hosts)):
            try:
                fabric.require_path(source, destination, 0)
            except TopologyError:
                continue
            pairs.add((source, destination))
    return pairs


@pytest.mark.parametrize(("blocks", "spines"), [(1, 0), (2, 2)])
def test_ranks_of_a_number_and_of_a_host_are_joined_and_no_others(blocks: int, spines: int) -> None:
    fabric = with_scale_up(
        rail_only(rails=3, blocks=blocks, hosts_per_leaf=2, spines_per_rail=spines), 3, rail_optimised=True
    )
    assert fabric.scale_up is not None
    host_of = {rank: number for number, ranks in enumerate(fabric.scale_up.hosts(len(fabric.hosts))) for rank in ranks}
    rail_of = {host.index: fabric.switch_of(host.name, 0).group for host in fabric.hosts}
    ranks = range(len(fabric.hosts))
    assert len(set(host_of.values())) == 2 * blocks
    assert joined(fabric) == {
        (one, other)
        for one in ranks
        for other in ranks
        if host_of[one] == host_of[other] or rail_of[one] == rail_of[other]
    }
    assert topologies.from_parameters(fabric.parameters) == fabric


def test_rails_of_a_full_fabric_are_joined() -> None:
    fabric = with_scale_up(
        topologies.leaf_spine(planes=1, leaves=4, spines=1, hosts_per_leaf=2), 4, rail_optimised=True
    )
    assert len(joined(fabric)) == 64


def test_a_hierarchical_all_reduce_needs_no_more_and_an_incast_without_relays_is_refused() -> None:
    section = RailOnlySection(planes=1, ranks_per_host=2, hosts_per_leaf=2, scale_up=ScaleUpSection(relay="off"))
    buffers = [np.arange(1024, dtype=np.int32) + rank for rank in range(4)]
    with Fabric(section.build(), clock="virtual") as fabric:
        for _ in range(2):
            reduced = fabric.run(CollectiveRequest("allreduce", buffers, "hierarchical")).buffers
            assert all(np.array_equal(each, sum(buffers)) for each in reduced)
            with refused(BadInputError, problem="have no path in plane"):
                fabric.incast("h0", 4096)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"blocks": 2}, ["spines_per_rail", "2 blocks"]),
        ({"hosts_per_leaf": 1}, ["hosts_per_leaf", "at least 2"]),
        ({"rail_optimised": False}, ["rail_optimised", "leaf_spine"]),
        ({"rails": 4}, ["unknown key", "rails"]),
    ],
)
def test_what_makes_no_rails_is_refused(keys: dict[str, object], words: list[str]) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_scenario({"fabric": {"kind": "rail_only", **keys}})
    for word in words:
        assert word in str(caught.value)
    with refused(
        TopologyError,
        valid="1 to 509; several blocks need a spine between the leaves of a rail",
        problem="spines_per_rail=0 is out of",
    ):
        rail_only(blocks=2)
    with refused(TopologyError, valid="at least 2 hosts", problem="a rail of one host leads nowhere"):
        rail_only(hosts_per_leaf=1)


def test_numbers_that_fill_no_hosts_are_refused_with_the_nearest_that_do() -> None:
    fabric = topologies.leaf_spine(planes=1, leaves=5, spines=1, hosts_per_leaf=3)
    with refused(TopologyError, valid="multiples of 2, such as 4 or 6", problem="5 leaves are not whole blocks"):
        with_scale_up(fabric, 2, rail_optimised=True)
    with refused(TopologyError, valid="multiples of 4, such as 4", problem="3 ranks on a leaf do not fill"):
        with_scale_up(fabric, 4)
