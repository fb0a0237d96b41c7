"""Names of links: `p0l0<->p0s1` or `p0l0-p0s1`, one direction `h0->p0l0`, patterns `p0s1<->*`.

Two nodes name all links between them; a port, `p0l0:3<->p0s1`, selects one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from weft.topologies.fabric import Endpoint, FabricLink, FabricSpec

LINK_PATTERN = r"^\s*([^\s<>-]{1,64})\s*(<->|->|-)\s*([^\s<>-]{1,64})\s*$"
"""A regular expression for the name of a link, or for a pattern of such names; its groups are both ends and the way."""


@dataclass(frozen=True)
class LinkChoice:
    """Links with ends that match two patterns, NODE or NODE:PORT; only from first to second unless `both_ways`."""

    sender: str
    receiver: str
    both_ways: bool

    @classmethod
    def parse(cls, text: str) -> LinkChoice:
        """Parse `p0l0<->p0s1`, `p0l0-p0s1`, `p0l0->p0s1` (one direction) or `p0l*<->p0s*`. Raises ValueError."""
        match = re.match(LINK_PATTERN, text)
        if match is None:
            raise ValueError(
                f"{text[:100]!r} names no link: two nodes, or ports, with <-> or - between, or -> for one way only, "
                "such as p0l0<->p0s1, p0l0:3<->p0s1:1 or h0->p0l0; * stands for any name"
            )
        sender, between, receiver = match.groups()
        return cls(sender, receiver, between != "->")

    @property
    def is_pattern(self) -> bool:
        """Return whether an end has wildcards."""
        return any(letter in self.sender + self.receiver for letter in "*?[")

    def takes(self, sender: Endpoint, receiver: Endpoint) -> bool:
        """Return whether the choice includes the direction from one end of a link to the other."""
        return self._matches(sender, receiver) or (self.both_ways and self._matches(receiver, sender))

    def _matches(self, first: Endpoint, second: Endpoint) -> bool:
        return _is(first, self.sender) and _is(second, self.receiver)

    def links_of(self, fabric: FabricSpec) -> list[FabricLink]:
        """Return the links of a fabric that the choice includes in at least one direction."""
        if not self.is_pattern:
            nodes = (text.partition(":")[0] for text in (self.sender, self.receiver))
            among = fabric.links_between(*nodes)
        else:
            among = fabric.links
        return [link for link in among if self.takes(link.a, link.b) or self.takes(link.b, link.a)]


def _is(end: Endpoint, pattern: str) -> bool:
    return fnmatchcase(str(end) if ":" in pattern else end.node, pattern)
