"""A receiver's link, as in an incast."""

from __future__ import annotations

from weft.results.limits.busy_link import BusyLink
from weft.results.limits.evidence import Bottleneck


class ReceiverLink(BusyLink):
    """The link from a switch to a host."""

    name = "receiver"
    figures = "`transmitted_bytes` of switches' ports to hosts, the time in which traffic ran"
    side = "receiver"

    def subject(self, found: Bottleneck) -> str:
        """See BusyLink."""
        receiver = found.peer.rpartition(":")[0]
        return f"{found.port}, the link to the receiver {receiver}{self.others(found, 'to receivers')}"
