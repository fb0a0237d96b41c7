"""How people name links: `p0l0<->p0s1`, `p0l0-p0s1`, one way `h0->p0l0`, of several `p0s1<->*`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from weft.topologies.fabric import FabricLink, FabricSpec

LINK_PATTERN = r"^\s*([^\s<>-]{1,64})\s*(<->|->|-)\s*([^\s<>-]{1,64})\s*$"


@dataclass(frozen=True)
class LinkChoice:
    """Links between nodes whose names match two patterns; only from the first to the second unless `both_ways`."""

    sender: str
    receiver: str
    both_ways: bool

    @classmethod
    def parse(cls, text: str) -> LinkChoice:
        """Read `p0l0<->p0s1` or `p0l0-p0s1`, one way `p0l0->p0s1`, or of several `p0l*<->p0s*`. Raises ValueError."""
        match = re.match(LINK_PATTERN, text)
        if match is None:
            raise ValueError(
                f"{text[:100]!r} names no link: two nodes with <-> or - between, or -> for one way only, such as "
                "p0l0<->p0s1 or h0->p0l0; * stands for any name"
            )
        sender, between, receiver = match.groups()
        return cls(sender, receiver, between != "->")

    @property
    def is_pattern(self) -> bool:
        """Return whether it may name several links."""
        return any(letter in self.sender + self.receiver for letter in "*?[")

    def takes(self, sender: str, receiver: str) -> bool:
        """Return whether it is about what one node sends to the other."""
        return self._matches(sender, receiver) or (self.both_ways and self._matches(receiver, sender))

    def _matches(self, first: str, second: str) -> bool:
        return fnmatchcase(first, self.sender) and fnmatchcase(second, self.receiver)

    def links_of(self, fabric: FabricSpec) -> list[FabricLink]:
        """Return the links of a fabric that it is about, in one direction at least."""
        return [
            link
            for link in fabric.links
            if self.takes(link.a.node, link.b.node) or self.takes(link.b.node, link.a.node)
        ]
