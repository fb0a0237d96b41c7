"""How a scenario names links, and the faults that links can have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator

from topologies import FabricSpec
from weft.scenario.values import Probability, Section, TimePs

_BOTH_WAYS, _ONE_WAY = "<->", "->"


@dataclass(frozen=True)
class LinkChoice:
    """Links between nodes whose names match two patterns; only from the first to the second unless `both_ways`."""

    sender: str
    receiver: str
    both_ways: bool

    @classmethod
    def parse(cls, text: str) -> LinkChoice:
        """Read `p0l0<->p0s1`, one way `p0l0->p0s1`, or of several `p0l*<->p0s*`. Raises ValueError."""
        parts = re.split(r"\s*(<->|->)\s*", text.strip())
        if len(parts) != 3 or not parts[0] or not parts[2]:
            raise ValueError(
                f"'{text}' names no link: two nodes with {_BOTH_WAYS} between, or {_ONE_WAY} for one way only, "
                "such as p0l0<->p0s1 or h0->p0l0; * stands for any name"
            )
        return cls(parts[0], parts[2], parts[1] == _BOTH_WAYS)

    def takes(self, sender: str, receiver: str) -> bool:
        """Return whether it is about what one node sends to the other."""
        return self._matches(sender, receiver) or (self.both_ways and self._matches(receiver, sender))

    def _matches(self, first: str, second: str) -> bool:
        return fnmatchcase(first, self.sender) and fnmatchcase(second, self.receiver)

    def is_in(self, fabric: FabricSpec) -> bool:
        """Return whether the fabric has such a link."""
        return any(
            self.takes(link.a.node, link.b.node) or self.takes(link.b.node, link.a.node)
            for link in fabric.links
        )


def _checked(text: str) -> str:
    LinkChoice.parse(text)
    return text


LinkName = Annotated[str, AfterValidator(_checked)]
"""What `LinkChoice.parse` reads."""


class FaultsOfLinks(Section):
    """Faults of some links, in place of those of all links."""

    link: LinkName
    loss: Probability | None = None
    duplicate: Probability | None = None
    delay_probability: Probability | None = None
    extra_delay: TimePs | None = None
    bit_error_rate: Probability | None = None


class LinkFaults(Section):
    """What goes wrong on a link, a packet or a bit at a time.

    `loss`: a packet never arrives. `duplicate`: a copy comes behind it. `delay_probability`: it takes `extra_delay`
    longer, and is overtaken. `bit_error_rate`: of each bit; the port at the far end drops a packet with a wrong one.
    """

    loss: Probability = 0.0
    duplicate: Probability = 0.0
    delay_probability: Probability = 0.0
    extra_delay: TimePs = 0
    bit_error_rate: Probability = 0.0

    @property
    def any(self) -> bool:
        """Return whether anything goes wrong."""
        return bool(self.loss or self.duplicate or self.delay_probability or self.bit_error_rate)

    @property
    def keeps_order_and_number(self) -> bool:
        """Return whether packets arrive in order and at most once."""
        return not (self.duplicate or self.delay_probability)

    def with_those_of(self, links: FaultsOfLinks) -> LinkFaults:
        """Return these with what is said of some links."""
        given = {
            name: value for name in LinkFaults.model_fields if (value := getattr(links, name)) is not None
        }
        return LinkFaults(**{**{name: getattr(self, name) for name in LinkFaults.model_fields}, **given})
