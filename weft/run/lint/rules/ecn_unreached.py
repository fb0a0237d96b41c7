"""Queues that are full, or senders that are paused, before ECN marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.quantities.readable import format_rate
from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan, PlannedPort
from weft.run.lint.queue_bounds import QueueBound, queue_bounds
from weft.run.lint.rule import Finding, Rule


class EcnUnreached(Rule):
    """Queues that are full, or senders that are paused, before ECN marks."""

    name = "ecn-unreached"
    when = (
        "`ecn.kmin`, given or by the rate of a port, is deeper than its queue grows before it is full, PFC has "
        "paused all that send to it, or they are out of credits; and thresholds are given, or a congestion "
        "control needs marks"
    )
    reason = (
        "nothing is marked, so congestion controls that follow marks do not slow down before packets are lost or paused"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        is_set = plan.options.ecn.kmin is not None
        if not is_set and not any(plan.needing_marks()):
            return
        frame_bytes, data_classes = plan.any_frame_bytes, plan.options.scheduling.data_classes
        found: dict[tuple[int, str], tuple[PlannedPort, int, QueueBound]] = {}
        for each in plan.ports:
            # Queues of credits stay short by design.
            if each.port.credits is not None and not is_set:
                continue
            kmin_bytes = plan.marking.marks_from_bytes(each.port.rate_bps, data_classes)
            for bound in queue_bounds(each.switch, each.port, data_classes):
                # A mark goes by the depth without the frame, or by the depth that it met.
                if kmin_bytes + frame_bytes > bound.most_bytes:
                    found.setdefault((each.port.rate_bps, bound.event), (each, kmin_bytes, bound))
        rates_bps = [each.port.rate_bps for each, _, _ in found.values()]
        settings = _lower(plan, min((bound.most_bytes for _, _, bound in found.values()), default=0), rates_bps)
        for each, kmin_bytes, bound in found.values():
            kmin = "ecn.kmin" if is_set else "ecn.kmin's default for that rate"
            yield self.finding(
                "ecn.kmin" if is_set else "ecn",
                f"ECN does not mark at ports of {format_rate(each.port.rate_bps)}, such as {each.name}, before "
                f"{bound.event}, at {bound.most_bytes} B: marks begin above {kmin_bytes} B, {kmin}",
                settings,
                f"raise {bound.keys}",
            )


def _lower(plan: Plan, most_bytes: int, rates_bps: Sequence[int]) -> dict[str, object]:
    """Return thresholds that a queue of so many bytes reaches, and the probability at ports of these rates.

    Empty if it holds too few frames.
    """
    kmax_bytes = min(most_bytes - plan.any_frame_bytes, plan.options.pfc.xoff or most_bytes)
    kmin_bytes = max(2 * plan.any_frame_bytes, kmax_bytes // 4)
    if kmin_bytes >= kmax_bytes:
        return {}
    data_classes = plan.options.scheduling.data_classes
    pmax = max(
        profile.pmax for rate_bps in rates_bps for profile in plan.marking.profiles_at(rate_bps, data_classes).values()
    )
    return {"ecn.kmin": shortest_size(kmin_bytes), "ecn.kmax": shortest_size(kmax_bytes), "ecn.pmax": pmax}
