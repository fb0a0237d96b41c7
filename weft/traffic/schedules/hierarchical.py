"""All-reduce in three phases where several ranks share a host, whose scale-up links are faster than its NICs.

Inside every host a reduce-scatter leaves each rank one chunk; ranks of the same number on all hosts all-reduce it by
rings over their own NICs, so that every rail carries as much; an all-gather inside every host ends it. A NIC carries
2(h-1)/h of a chunk, 1/r of the data, for h hosts of r ranks.
"""

from __future__ import annotations

from weft.traffic.schedule_nodes import DATA, ELEMENT_BYTES, SCRATCH, RankSchedule
from weft.traffic.schedules.plan import RankPlan, Readiness, cut, shifted
from weft.traffic.schedules.ring import Ring
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import split_evenly


class _Host:
    """The exchange among the ranks of one host, from the view of one: every rank writes to every other at once."""

    def __init__(self, plan: RankPlan, chunks: list[range]) -> None:
        spec = plan.spec
        self.plan, self.chunks = plan, chunks
        self.host, self.local = divmod(spec.position(plan.rank), spec.ranks_per_host)
        self.others = [(self.local + step) % spec.ranks_per_host for step in range(1, spec.ranks_per_host)]
        self.transfer_count = max(len(self._pieces(local)) for local in range(spec.ranks_per_host))

    def rank_of(self, local: int) -> int:
        return self.plan.spec.rank_at(self.host * self.plan.spec.ranks_per_host + local)

    def _pieces(self, local: int) -> list[range]:
        return cut(self.chunks[local], self.plan.spec.piece_bytes)

    def _landing_offset(self, to: int, source: int) -> int:
        """Elements from a piece's place to where it lands: what comes from each rank has a place of its own."""
        spec = self.plan.spec
        first = spec.element_count + self.chunks[0].start + self.plan.plane * spec.ranks_per_host
        before = (source - to) % spec.ranks_per_host - 1
        return first + before * len(self.chunks[to]) - self.chunks[to].start

    def reduce_scatter(self) -> Readiness:
        """Reduce the rank's own chunk; returns what makes it ready."""
        plan = self.plan
        for other in self.others:
            offset = self._landing_offset(other, self.local)
            for number, piece in enumerate(self._pieces(other)):
                plan.write(self.rank_of(other), number, piece, shifted(piece, offset), to=SCRATCH)
        done = Readiness()
        for number, piece in enumerate(self._pieces(self.local)):
            reduced: int | None = None
            for other in self.others:
                partial = shifted(piece, self._landing_offset(self.local, other))
                reduced = plan.reduce(piece, partial, [plan.wait(self.rank_of(other), number), reduced])
            if reduced is not None:
                done.record(piece, reduced)
        return done

    def all_gather(self, ready: Readiness) -> None:
        """Give the rank's own chunk to the others, and take theirs."""
        plan = self.plan.from_transfer(self.transfer_count)
        for other in self.others:
            for number, piece in enumerate(self._pieces(self.local)):
                plan.write(self.rank_of(other), number, piece, after=ready.after(piece))
            for number, _ in enumerate(self._pieces(other)):
                plan.wait(self.rank_of(other), number)


def hierarchical_all_reduce(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-reduce inside hosts, between them by rail, inside them again."""
    size_bytes = spec.element_count * ELEMENT_BYTES
    # What comes from other hosts lands as far on as its place; behind that is what comes from the host's ranks, whose
    # chunks are rounded up.
    rounding_bytes = len(spec.plane_rates_bps) * spec.ranks_per_host * ELEMENT_BYTES
    schedule = RankSchedule(rank, {DATA: size_bytes, SCRATCH: 2 * size_bytes + rounding_bytes})
    local = spec.position(rank) % spec.ranks_per_host
    for plane, stripe in enumerate(spec.stripes()):
        if not stripe:
            continue
        plan = RankPlan(spec, rank, schedule, plane)
        chunks = split_evenly(stripe, spec.ranks_per_host)
        host = _Host(plan, chunks)
        ready = host.reduce_scatter()
        if spec.host_count > 1 and chunks[local]:
            ring = Ring(
                plan,
                host.host,
                lambda other, local=local: spec.rank_at(other * spec.ranks_per_host + local),  # type: ignore[misc]
                split_evenly(chunks[local], spec.host_count),
            )
            ready = ring.all_gather(ring.reduce_scatter(ready))
        host.all_gather(ready)
    return schedule
