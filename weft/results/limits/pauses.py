"""Flow control: PFC that holds a port, up to hosts."""

from __future__ import annotations

from weft.results.limits.evidence import Evidence
from weft.results.limits.kind import Limit, LimitKind, percent
from weft.results.nic_storms import NIC_STORMS
from weft.results.switch_memory import MEMORY


class Pauses(LimitKind):
    """The port that PFC held for longest."""

    name = "pauses"
    figures = "`longest_pause_ps` and `longest_pause_port` of `memory`, the time in which traffic ran"

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        held = max(evidence.results.of(MEMORY), key=lambda each: each.longest_pause_ps, default=None)
        if held is None or not held.longest_pause_ps:
            return None
        if any(storm.began_ps is not None for storm in evidence.results.of(NIC_STORMS)):
            return None  # pauses spread from the broken NIC, which is a limit of another kind
        share = min(1.0, held.longest_pause_ps / evidence.traffic_ps)
        port = held.longest_pause_port
        # Hosts are named without their ports, and are held by their switches.
        who = evidence.receiver_at(port)
        by = f"the receiver {who}, which held {port} by PFC" if who else f"PFC, which held {port}"
        return Limit(self.name, f"{by} for {percent(share)} of the time", share, port)
