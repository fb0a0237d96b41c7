"""A link between switches, such as an uplink on which flows collide."""

from __future__ import annotations

from weft.results.limits.busy_link import BusyLink
from weft.results.limits.evidence import Bottleneck


class FabricLink(BusyLink):
    """A link between two switches."""

    name = "link"
    figures = "`transmitted_bytes` of switches' ports to other switches, the time in which traffic ran"
    side = "link"

    def subject(self, found: Bottleneck) -> str:
        """See BusyLink."""
        return f"{found.port}, the link to {found.peer}{self.others(found, 'between switches')}"
