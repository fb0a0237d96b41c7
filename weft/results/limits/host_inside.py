"""Links inside hosts: PCIe, sockets and memory between accelerators and NICs."""

from __future__ import annotations

from weft.quantities.readable import format_rate
from weft.results.host_links import HOST_LINKS
from weft.results.limits.evidence import LEAST_LOAD, Evidence
from weft.results.limits.kind import Limit, LimitKind, percent


class HostInside(LimitKind):
    """The busiest link inside hosts."""

    name = "host_links"
    figures = "`busy_share` of `host_links`"

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        found = max(evidence.results.of(HOST_LINKS), key=lambda each: each.busy_share, default=None)
        if found is None or found.busy_share < LEAST_LOAD:
            return None
        link = f"{found.link} inside {found.busiest_host} ({format_rate(found.rate_bps)})"
        sentence = f"{link}, {percent(found.busy_share)} busy"
        return Limit(self.name, sentence, min(1.0, found.busy_share), found.busiest_host)
