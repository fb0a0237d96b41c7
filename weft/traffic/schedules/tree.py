"""Double binary trees: all-reduce, broadcast, reduce.

Two trees over the same ranks each carry half of the data. Inner nodes of one are leaves of the other, so that every
link carries about as much as in a ring, in log2(n) steps instead of n (Sanders, Speck and Träff, "Two-tree algorithms
for full bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009).
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.traffic.costs import Cost, Links, nic_bytes, piece_bytes
from weft.traffic.lane_schedule import REDUCE, WAIT, WRITE, LaneSchedule
from weft.traffic.schedule_nodes import DATA, SCRATCH
from weft.traffic.schedules.lane_plan import LanePlan, new_schedule
from weft.traffic.schedules.plan import cut
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import split_evenly

TREES = 2


def parent_of(role: int, count: int) -> int | None:
    """Return the parent of a role in the in-order binary tree over roles 1 to count-1, below role 0.

    A role's height is the place of its lowest set bit, so odd roles are leaves.
    """
    if role == 0:
        return None
    bit = role & -role
    above = (role ^ bit) | (bit << 1)
    return above if above < count else role ^ bit


def children_of(role: int, count: int) -> list[int]:
    """Return the children of a role: none, one or two, in order."""
    if role == 0:
        return [1 << (count - 1).bit_length() - 1] if count > 1 else []
    bit = role & -role
    children = [role - bit // 2] if bit > 1 else []
    while (bit := bit // 2) > 0:
        if role + bit < count:
            children.append(role + bit)
            break
    return children


class _Tree:
    """One of the two trees, below the root, from the view of a rank."""

    def __init__(self, spec: CollectiveSpec, rank: int, number: int) -> None:
        self.spec, self.number, self.count = spec, number, spec.rank_count
        role = self._role_of(rank)
        above = parent_of(role, self.count)
        self.parent = None if above is None else self._rank_of(above)
        self.children = [self._rank_of(child) for child in children_of(role, self.count)]
        # The parent keeps its first child's data apart from its second child's.
        self.place_at_parent = 0 if above is None else children_of(above, self.count).index(role)

    def _role_of(self, rank: int) -> int:
        """The root has role 0 in both trees; the others' roles differ by one, odd in one tree and even in the other."""
        spec = self.spec
        role = (spec.position(rank) - spec.position(spec.root)) % self.count
        if role and self.number:
            role = role % (self.count - 1) + 1
        return role

    def _rank_of(self, role: int) -> int:
        spec = self.spec
        if role and self.number:
            role = (role - 2) % (self.count - 1) + 1
        return spec.rank_at((spec.position(spec.root) + role) % self.count)


class _Pass:
    """One rank's part in one tree on one plane: a lane for each piece."""

    def __init__(self, plan: LanePlan, tree: _Tree, elements: range, piece_count: int) -> None:
        self.plan, self.tree, self.piece_count = plan, tree, piece_count
        self.piece = plan.pieces_of(elements)
        self.scratch_elements = plan.spec.element_count

    def add_lanes(self, *, up: bool, down: bool) -> None:
        """Add lanes that go up the tree, reducing, or down, or one after the other."""
        schedule, tree = self.plan.schedule, self.tree
        kinds = []
        if up:
            kinds += [WAIT, REDUCE] * len(tree.children) + ([] if tree.parent is None else [WRITE])
        down_slot = len(kinds)
        if down:
            kinds += ([] if tree.parent is None else [WAIT]) + [WRITE] * len(tree.children)
        schedule.add_lanes(self.piece_count)
        schedule.add_loop(1, schedule.add_grid(self.piece_count, *kinds))
        if up:
            self._up()
        if down:
            self._down(down_slot, self.piece_count if up else 0, in_turn=up and bool(tree.children))

    def _up(self) -> None:
        """Reduce the children's pieces into ours and send it on."""
        plan, tree = self.plan, self.tree
        for place, child in enumerate(tree.children):
            plan.receive(self.piece, plan.channel(child), slot=2 * place)
            plan.schedule.reduce(self.piece, shift=place * self.scratch_elements, slot=2 * place + 1)
        if tree.parent is not None:
            plan.send(
                self.piece,
                plan.channel(tree.parent),
                to_scratch=True,
                shift=tree.place_at_parent * self.scratch_elements,
                slot=2 * len(tree.children),
            )

    def _down(self, slot: int, transfer: int, in_turn: bool) -> None:
        """Take the parent's piece in place of ours, unless we are the root, and send it to the children."""
        plan, tree = self.plan, self.tree
        if tree.parent is not None:
            channel = plan.channel(tree.parent)
            plan.receive(self.piece, channel, transfer=transfer, slot=slot, in_turn=in_turn)
            slot += 1
        for number, child in enumerate(tree.children):
            plan.send(self.piece, plan.channel(child), transfer=transfer, slot=slot + number)


def _passes(spec: CollectiveSpec, rank: int, schedule: LaneSchedule) -> Iterator[_Pass]:
    """Yield every tree of every plane that carries something."""
    for plane, stripe in enumerate(spec.stripes()):
        plan = LanePlan(spec, rank, schedule, plane)
        for number, elements in enumerate(split_evenly(stripe, TREES)):
            pieces = len(cut(elements, spec.piece_bytes, spec.element_bytes))
            if pieces and spec.rank_count > 1:
                yield _Pass(plan, _Tree(spec, rank, number), elements, pieces)
                plan = plan.from_transfer(2 * pieces)


def _schedule(spec: CollectiveSpec, rank: int, *, up: bool, down: bool) -> LaneSchedule:
    size_bytes = spec.size_bytes
    schedule = new_schedule(spec, rank, {DATA: size_bytes} | ({SCRATCH: 2 * size_bytes} if up else {}))
    for tree in _passes(spec, rank, schedule):
        tree.add_lanes(up=up, down=down)
    return schedule


def tree_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce by two trees on each plane: up to the root (rank 0 unless given), and down again."""
    return _schedule(spec, rank, up=True, down=True)


def tree_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Reduce to the root by two trees on each plane; the other ranks' data is overwritten."""
    return _schedule(spec, rank, up=True, down=False)


def tree_broadcast(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Broadcast from the root by two trees on each plane."""
    return _schedule(spec, rank, up=False, down=True)


def _depths(spec: CollectiveSpec) -> tuple[int, int]:
    """Return the steps from the farthest leaf to the root: between hosts, and inside them."""
    outside = (spec.host_count - 1).bit_length()
    return outside, (spec.rank_count - 1).bit_length() - outside


def tree_all_reduce_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """2 log2(n) steps of the first piece, then the others: a rank sends all of the data up, and all down."""
    return _passes_cost(spec, links, 2)


def tree_pass_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """log2(n) steps of the first piece, then the others: of a broadcast or a reduce."""
    return _passes_cost(spec, links, 1)


def _passes_cost(spec: CollectiveSpec, links: Links, passes: int) -> Cost:
    size_bytes, (outside, inside) = nic_bytes(spec), _depths(spec)
    piece = piece_bytes(size_bytes / TREES, spec)
    latency_ps = outside * links.between.message_ps(piece) + inside * links.inside.message_ps(piece)
    slowest = links.between if outside else links.inside
    busy_ps = (passes * size_bytes - piece) * slowest.ps_per_byte if spec.rank_count > 1 else 0.0
    return Cost(passes * (outside + inside), passes * latency_ps, busy_ps)
