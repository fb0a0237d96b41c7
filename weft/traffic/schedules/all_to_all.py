"""All-to-all: chunk j of rank i becomes chunk i of rank j. Moves (n-1)/n of the data through every line."""

from __future__ import annotations

from weft.traffic.schedule_nodes import DATA, ELEMENT_BYTES, SCRATCH, RankSchedule
from weft.traffic.schedules.plan import RankPlan
from weft.traffic.schedules.spec import CollectiveSpec


def direct_all_to_all(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Write to all other ranks at once; the NIC shares the line among them."""
    return _all_to_all(spec, rank, in_turn=False)


def pairwise_all_to_all(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Write to the rank one further on, then two further on, …: a step begins when the one before is through.

    At every step each rank sends to one and receives from one (Thakur, Rabenseifner and Gropp, 2005, section 3.4).
    """
    return _all_to_all(spec, rank, in_turn=True)


def _all_to_all(spec: CollectiveSpec, rank: int, in_turn: bool) -> RankSchedule:
    size_bytes = spec.element_count * ELEMENT_BYTES
    schedule = RankSchedule(rank, {DATA: size_bytes, SCRATCH: size_bytes})
    for plane in range(len(spec.plane_rates_bps)):
        chunks = spec.chunk_stripes(plane)
        if not chunks[rank]:
            continue
        plan = RankPlan(spec, rank, schedule, plane)
        sent, arrived = _exchange(plan, chunks, in_turn)
        # What came takes the place of what went the other way.
        for peer, node in arrived.items():
            plan.copy(chunks[peer], chunks[peer], [node, sent[peer]])
    return schedule


def _exchange(plan: RankPlan, chunks: list[range], in_turn: bool) -> tuple[dict[int, int], dict[int, int]]:
    """Send every rank its chunk and receive theirs into scratch; returns the nodes of both, by peer."""
    spec, own = plan.spec, plan.spec.position(plan.rank)
    sent: dict[int, int] = {}
    arrived: dict[int, int] = {}
    before: list[int] = []
    for step in range(1, spec.rank_count):
        target = spec.rank_at((own + step) % spec.rank_count)
        source = spec.rank_at((own - step) % spec.rank_count)
        sent[target] = plan.write(target, 0, chunks[target], chunks[plan.rank], to=SCRATCH, after=before)
        arrived[source] = plan.wait(source, 0)
        if in_turn:
            before = [sent[target], arrived[source]]
    return sent, arrived
