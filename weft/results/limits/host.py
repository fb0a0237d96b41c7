"""Hosts' own links: senders fill them, and the fabric takes all that they send."""

from __future__ import annotations

from weft.quantities.readable import counted
from weft.results.limits.busy_link import BusyLink
from weft.results.limits.evidence import Bottleneck


class HostLink(BusyLink):
    """The links from hosts into the fabric."""

    name = "host"
    figures = "`transmitted_bytes` of hosts' ports, the time in which traffic ran"
    side = "host"

    def subject(self, found: Bottleneck) -> str:
        """See BusyLink."""
        if found.count == 1:
            return f"{found.port}, the host's own link to {found.peer}"
        return f"the hosts' own links into the fabric ({counted(found.count, 'port')}, {found.port} first)"
