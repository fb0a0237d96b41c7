"""All-reduce by the switches inside hosts, and double binary trees over hosts between them: NCCL's NVLSTree.

A host's switch leaves each rank one chunk. Ranks of the same number on all hosts reduce it along two trees, each half
of it, and pass the results back; each host's switch multicasts them. A NIC sends about 2/n of the data, in log2(h)
steps each way for h hosts of n ranks (`weft.traffic.schedules.tree`: the same over ranks).
"""

from __future__ import annotations

from weft.traffic.costs import Cost, Links, nic_bytes, piece_bytes
from weft.traffic.lane_schedule import REDUCE, WAIT, WRITE, LaneSchedule
from weft.traffic.schedules.lane_plan import LanePlan
from weft.traffic.schedules.nvls import all_reduce_by_switch_and, with_inside_cost
from weft.traffic.schedules.plan import cut
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.schedules.tree import TREES, children_of, parent_of
from weft.traffic.striping import split_evenly


def nvls_tree_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce in the host's switch, between hosts by two trees for each rail, and by multicast in the host."""
    # A host's two children in a tree each have a place of their own.
    return all_reduce_by_switch_and(_trees_between, spec, rank, scratch_bytes=2 * spec.size_bytes, streams=TREES)


def _trees_between(plan: LanePlan, elements: range, ready: int) -> int:
    reduced = plan.schedule.add_marks()
    for number, half in enumerate(split_evenly(elements, TREES)):
        pieces = len(cut(half, plan.spec.piece_bytes, plan.spec.element_bytes))
        if pieces:
            _add_tree(plan, _HostTree(plan.spec, plan.rank, number), half, pieces, ready, reduced)
            plan = plan.from_transfer(2 * pieces)
    return reduced


class _HostTree:
    """One of two trees over hosts, from the view of a rank: inner hosts of one are leaves of the other."""

    def __init__(self, spec: CollectiveSpec, rank: int, number: int) -> None:
        self.spec, self.number, self.count = spec, number, spec.host_count
        host, self.local = divmod(spec.position(rank), spec.host_size)
        # The first host is the root of both; the others' roles differ by one.
        role = host % (self.count - 1) + 1 if host and number else host
        above = parent_of(role, self.count)
        self.parent = None if above is None else self._rank_of(above)
        self.children = [self._rank_of(child) for child in children_of(role, self.count)]
        self.place_at_parent = 0 if above is None else children_of(above, self.count).index(role)

    def _rank_of(self, role: int) -> int:
        host = (role - 2) % (self.count - 1) + 1 if role and self.number else role
        return self.spec.rank_at(host * self.spec.host_size + self.local)


def _add_tree(plan: LanePlan, tree: _HostTree, elements: range, pieces: int, ready: int, reduced: int) -> None:
    """Add a lane for each piece: up to the root, as the host's switch has reduced it, and down again."""
    schedule, children = plan.schedule, tree.children
    piece, place = plan.pieces_of(elements), plan.spec.element_count
    up = [WAIT, REDUCE] * len(children)
    kinds = up if tree.parent is None else [*up, WRITE, WAIT]
    schedule.add_lanes(pieces)
    schedule.add_loop(1, schedule.add_grid(pieces, *kinds, *[WRITE] * len(children)))
    schedule.await_elements(piece, ready)
    for number, child in enumerate(children):
        plan.receive(piece, plan.channel(child), slot=2 * number)
        schedule.reduce(piece, shift=number * place, slot=2 * number + 1)
    if tree.parent is not None:
        channel = plan.channel(tree.parent)
        plan.send(piece, channel, to_scratch=True, shift=tree.place_at_parent * place, slot=len(up))
        plan.receive(piece, channel, transfer=pieces, slot=len(up) + 1, in_turn=bool(children))
    schedule.mark_elements(piece, reduced)
    for number, child in enumerate(children):
        plan.send(piece, plan.channel(child), transfer=pieces, slot=len(kinds) + number)


def nvls_tree_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """2 log2(h) steps of the first piece, then the others, while hosts' switches work."""
    share_bytes, depth = nic_bytes(spec) / spec.host_size, (spec.host_count - 1).bit_length()
    piece = piece_bytes(share_bytes / TREES, spec)
    between = Cost(
        2 * depth,
        2 * depth * links.between.message_ps(piece),
        (2 * share_bytes - piece) * links.between.ps_per_byte,
    )
    return with_inside_cost(spec, links, between)
