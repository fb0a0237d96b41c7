"""How a scenario names links, and the faults that links can have."""

from __future__ import annotations

from typing import Annotated

from weft.quantities.definitions import Probability, ShortTime, number
from weft.quantities.example import Example
from weft.scenario.values import Section, Text
from weft.topologies import LINK_PATTERN

LinkName = Annotated[
    str,
    Text(
        "a link, two nodes with <-> or - between, or -> for one way only (* stands for any name)",
        LINK_PATTERN,
        "p0l0<->p0s1",
    ),
]
"""Text that `LinkChoice.parse` reads."""


class FaultsOfLinks(Section):
    """Faults of some links, in place of all links' faults."""

    link: LinkName
    """Which links: p0l0<->p0s1, h0->p0l0 for one direction, p0l*<->p0s* for several."""
    loss: Probability | None = None
    """As `faults.loss`."""
    duplicate: Probability | None = None
    """As `faults.duplicate`."""
    delay_probability: Annotated[Probability | None, Example("0.001", (".extra_delay=10us",))] = None
    """As `faults.delay_probability`."""
    extra_delay: Annotated[ShortTime | None, Example("10us", (".delay_probability=0.001",))] = None
    """As `faults.extra_delay`."""
    bit_error_rate: Annotated[Probability | None, Example("1e-9")] = None
    """As `faults.bit_error_rate`."""


class FaultsOfHost(Section):
    """Faults of a host."""

    host: Annotated[str, Text("a host", r"\S", "h3")]
    """Which host; the fault stays with it when a spare takes its rank."""
    compute: Annotated[float, number(0.1, 1000, example="1.25")]
    """Factor that lengthens its computations of jobs: items `model`, `trace`, `inference`, `parameter_server`,
    `storage`, `remote_memory`."""


class LinkFaults(Section):
    """Faults of a link, a packet or a bit at a time."""

    loss: Probability = 0.0
    """Probability that a packet never arrives."""
    duplicate: Probability = 0.0
    """Probability that a copy of a packet comes behind it."""
    delay_probability: Annotated[Probability, Example("0.001", (".extra_delay=10us",))] = 0.0
    """Probability that a packet takes `extra_delay` longer, and is overtaken."""
    extra_delay: Annotated[ShortTime, Example("10us", (".delay_probability=0.001",))] = 0
    """How much longer a delayed packet takes."""
    bit_error_rate: Annotated[Probability, Example("1e-9")] = 0.0
    """Probability that a bit is wrong; the port at the far end drops a packet with a wrong one."""

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
        given = {name: value for name in LinkFaults.model_fields if (value := getattr(links, name)) is not None}
        return LinkFaults(**{**{name: getattr(self, name) for name in LinkFaults.model_fields}, **given})
