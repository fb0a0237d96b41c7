"""PFC that pauses a sender before ECN marks every packet."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_rate
from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class EcnAfterPause(Rule):
    """PFC that pauses a sender before ECN marks every packet."""

    name = "ecn-after-pause"
    when = (
        "`pfc.xoff` is given and below `ecn.kmax`, given or by the rate of a port, and a congestion control of a "
        "lossless class needs marks"
    )
    reason = (
        "one sender that fills a queue is paused before ECN marks every packet, so PFC spreads the congestion "
        "that marks would have ended (Zhu et al., SIGCOMM 2015, section 4)"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        options = plan.options
        xoff_bytes = options.pfc.xoff
        if xoff_bytes is None or set(options.pfc.classes).isdisjoint(options.scheduling.data_classes):
            return
        if not any(plan.needing_marks()):
            return
        for each in sorted(plan.ports, key=lambda port: -port.port.rate_bps):
            profiles = plan.marking.profiles_at(each.port.rate_bps, options.scheduling.data_classes).values()
            profile = max(profiles, key=lambda profile: profile.kmax_bytes)
            kmax_bytes = profile.kmax_bytes
            if kmax_bytes <= xoff_bytes:
                continue
            kmin_bytes = max(2 * plan.any_frame_bytes, min(options.ecn.kmin or xoff_bytes // 4, xoff_bytes // 4))
            thresholds = {"ecn.kmin": shortest_size(kmin_bytes), "ecn.kmax": shortest_size(xoff_bytes)}
            pmax = {} if options.ecn.pmax is not None else {"ecn.pmax": profile.pmax}
            yield self.finding(
                "pfc.xoff",
                f"PFC pauses a port from which {xoff_bytes} B wait, before ECN marks every packet at ports of "
                f"{format_rate(each.port.rate_bps)}, such as {each.name}, above {kmax_bytes} B",
                thresholds | pmax if kmin_bytes < xoff_bytes else {},
                f"set pfc.xoff: {shortest_size(kmax_bytes)} or more",
            )
            return
