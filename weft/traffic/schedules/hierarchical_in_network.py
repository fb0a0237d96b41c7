"""All-reduce inside hosts over scale-up links first, then in the switches, with separate trees for each rail.

A reduce-scatter inside every host leaves each rank one chunk. Switches add up the chunks of ranks with the same number
on all hosts, and an all-gather inside every host ends it. A NIC carries 1/r of the data, for hosts of r ranks, however
many hosts there are.
"""

from __future__ import annotations

from weft.traffic.aggregation_format import has_exponents
from weft.traffic.costs import Cost, Links, nic_bytes
from weft.traffic.lane_schedule import AGGREGATE, Chunk, ChunkTable, Formula, LaneSchedule
from weft.traffic.schedules.hierarchical import HostExchange, all_reduce_inside_and_between, inside_cost
from weft.traffic.schedules.in_network import aggregation_cost
from weft.traffic.schedules.lane_plan import LanePlan
from weft.traffic.schedules.plan import MAX_PIECES
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import BLOCK_ELEMENTS, split_evenly

_PIECE_ELEMENTS = 16 * 1024
_EXCHANGED_PIECE_ELEMENTS, _MAX_EXCHANGED_PIECES = 64 * 1024, 8
"""Pieces of a sum of floats: each waits for its blocks' exponents, a round trip."""


def hierarchical_in_network_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce inside hosts, in the network by rail, inside hosts again."""
    return all_reduce_inside_and_between(spec, rank, _trees_between)


def _trees_between(plan: LanePlan, _: HostExchange, elements: range, ready: int) -> int:
    return aggregate_between(plan, elements, ready)


def aggregate_between(plan: LanePlan, elements: range, ready: int) -> int:
    """Have a rail's trees reduce elements as they are marked in `ready`; returns marks of those that are reduced."""
    reduced = plan.schedule.add_marks()
    for tree, part in plan.spec.of_trees(elements, plan.plane):
        _aggregate(plan, part, tree, ready, reduced)
    return reduced


def _aggregate(plan: LanePlan, elements: range, tree: int, ready: int, reduced: int) -> None:
    """Add a lane for each piece, which a tree gets as it is ready and the piece before has been given to it.

    All ranks of the rail give pieces in the same order, as the stream of an aggregation job demands.
    """
    schedule, pieces = plan.schedule, _pieces(plan.spec, elements)
    given = schedule.add_marks()
    table = schedule.add_table(ChunkTable.of([elements[:0], *pieces]))
    before, own = Chunk(table, 0, 0, 1), Chunk(table, 1, 0, 1)
    schedule.add_lanes(len(pieces))
    schedule.add_loop(1, schedule.add_grid(len(pieces), AGGREGATE), Formula(0, 0, 1))
    schedule.await_elements(own, ready)
    schedule.await_elements(before, given)
    schedule.aggregate(own, tree, slot=0)
    schedule.mark_elements(own, given)
    schedule.await_acknowledgement()
    schedule.mark_elements(own, reduced)


def _pieces(spec: CollectiveSpec, elements: range) -> list[range]:
    """Cut into pieces of whole blocks: of 32 bits to an element, no packet of 64 lanes is part full but the last."""
    least, most = _PIECE_ELEMENTS, MAX_PIECES
    if has_exponents(spec.dtype, spec.operation):
        least, most = _EXCHANGED_PIECE_ELEMENTS, _MAX_EXCHANGED_PIECES
    blocks = -(-len(elements) // BLOCK_ELEMENTS)
    count = max(1, min(most, len(elements) // least))
    shares = split_evenly(range(blocks), count)
    return [elements[share.start * BLOCK_ELEMENTS : share.stop * BLOCK_ELEMENTS] for share in shares]


def hierarchical_in_network_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """One step inside, one through the rail's trees, one inside."""
    inside = inside_cost(spec, links)
    if spec.host_count == 1:
        return inside + inside
    share_bytes = nic_bytes(spec) / spec.ranks_per_host
    return inside + aggregation_cost(spec, links, share_bytes, spec.host_count) + inside
