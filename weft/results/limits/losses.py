"""Lost packets, which hosts send again and wait for."""

from __future__ import annotations

import numpy as np

from weft.quantities.readable import counted
from weft.recording.tables import integers_of, names_of
from weft.results.limits.evidence import Evidence
from weft.results.limits.kind import Limit, LimitKind, percent


class Losses(LimitKind):
    """Packets that were sent again, and the time in which hosts waited to send them."""

    name = "losses"
    figures = (
        "`retransmissions`, `transmitted_packets` of hosts' ports; of a run of one pattern also the busiest port's "
        "load. The place: `tail_dropped_packets` of ports, else `link_faults`, else `drops`"
    )

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        again = evidence.results.retransmissions
        if not again or not evidence.loads:
            return None
        ports = evidence.tables["ports"]
        is_host = np.isin(names_of(ports, "port").texts().astype(str), sorted(evidence.host_ports))
        sent = max(1, int(integers_of(ports, "transmitted_packets")[is_host].sum()))
        resent = min(1.0, again / sent)
        place, where = _most_lost(evidence)
        sentence = f"lost packets: {percent(resent)} of what hosts sent was sent again{where}"
        idle = 0.0 if evidence.was_held else evidence.idle_share or 0.0
        if idle > resent:
            sentence += f"; the busiest link is idle for {percent(idle)} of the time"
        return Limit(self.name, sentence, max(resent, idle), place)


def _most_lost(evidence: Evidence) -> tuple[str, str]:
    """Return the place where most packets were lost, and words for it; empty if only the cause is known, or nothing."""
    ports = evidence.tables["ports"]
    dropped = integers_of(ports, "tail_dropped_packets")
    faults = evidence.results.link_faults
    lossy = max(faults, key=lambda each: each.dropped_packets, default=None)
    by_link = 0 if lossy is None else lossy.dropped_packets
    if len(dropped) and dropped.max() > by_link:
        row = int(dropped.argmax())
        place = str(names_of(ports, "port").texts()[row])
        return place, f", most were dropped by the full queue at {place} ({counted(int(dropped[row]), 'packet')})"
    if lossy is not None and by_link:
        return lossy.link, f", most were lost on {lossy.link} ({counted(by_link, 'packet')})"
    cause = max(evidence.results.drops, key=lambda name: evidence.results.drops[name], default="")
    return "", f", most of them dropped for the reason {cause}" if cause else ""
