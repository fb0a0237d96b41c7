"""Double binary trees: all-reduce, broadcast, reduce.

Two trees over the same ranks each carry half of the data. Inner nodes of one are leaves of the other, so that every
line carries about as much as in a ring, in log2(n) steps instead of n (Sanders, Speck and Träff, "Two-tree algorithms
for full bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009).
"""

from __future__ import annotations

from weft.traffic.schedule_nodes import DATA, ELEMENT_BYTES, SCRATCH, RankSchedule
from weft.traffic.schedules.plan import RankPlan, cut, shifted
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import split_evenly

TREES = 2


def parent_of(role: int, count: int) -> int | None:
    """Return the parent of a role in the in-order binary tree over roles 1 to count-1, below role 0.

    A role's height is that of its lowest set bit, so odd roles are leaves.
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
        # The parent keeps what its first child sends and what its second one sends apart.
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
    """What one rank does in one tree on one plane, piece by piece."""

    def __init__(self, plan: RankPlan, tree: _Tree) -> None:
        self.plan, self.tree = plan, tree
        self.scratch_elements = plan.spec.element_count

    def up(self, number: int, piece: range) -> int | None:
        """Reduce the children's pieces into ours and send it on; returns what makes our piece ready."""
        plan, tree = self.plan, self.tree
        reduced: int | None = None
        for place, child in enumerate(tree.children):
            partial = shifted(piece, place * self.scratch_elements)
            reduced = plan.reduce(piece, partial, [plan.wait(child, number), reduced])
        if tree.parent is not None:
            landing = shifted(piece, tree.place_at_parent * self.scratch_elements)
            plan.write(tree.parent, number, piece, landing, to=SCRATCH, after=[reduced])
        return reduced

    def down(self, number: int, piece: range, ready: int | None) -> None:
        """Take the parent's piece in place of ours, unless we are the root, and send it to the children."""
        if self.tree.parent is not None:
            ready = self.plan.wait(self.tree.parent, number, [ready])
        for child in self.tree.children:
            self.plan.write(child, number, piece, after=[ready])


def _passes(spec: CollectiveSpec, rank: int, schedule: RankSchedule) -> list[tuple[_Pass, list[range]]]:
    """Return every tree of every plane, with the pieces that it carries."""
    passes = []
    for plane, stripe in enumerate(spec.stripes()):
        plan = RankPlan(spec, rank, schedule, plane)
        for number, elements in enumerate(split_evenly(stripe, TREES)):
            pieces = cut(elements, spec.piece_bytes)
            if pieces and spec.rank_count > 1:
                passes.append((_Pass(plan, _Tree(spec, rank, number)), pieces))
                plan = plan.from_transfer(2 * len(pieces))
    return passes


def _schedule(spec: CollectiveSpec, rank: int, reduces: bool) -> RankSchedule:
    size_bytes = spec.element_count * ELEMENT_BYTES
    return RankSchedule(rank, {DATA: size_bytes} | ({SCRATCH: 2 * size_bytes} if reduces else {}))


def tree_all_reduce(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-reduce by two trees on each plane: up to the root (rank 0 unless told), and down again."""
    schedule = _schedule(spec, rank, reduces=True)
    for tree, pieces in _passes(spec, rank, schedule):
        for number, piece in enumerate(pieces):
            ready = tree.up(number, piece)
            tree.down(len(pieces) + number, piece, ready)
    return schedule


def tree_reduce(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Reduce to the root by two trees on each plane; the other ranks' data is used up."""
    schedule = _schedule(spec, rank, reduces=True)
    for tree, pieces in _passes(spec, rank, schedule):
        for number, piece in enumerate(pieces):
            tree.up(number, piece)
    return schedule


def tree_broadcast(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Broadcast from the root by two trees on each plane."""
    schedule = _schedule(spec, rank, reduces=False)
    for tree, pieces in _passes(spec, rank, schedule):
        for number, piece in enumerate(pieces):
            tree.down(number, piece, None)
    return schedule
