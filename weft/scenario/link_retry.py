"""The section about links that send again what gets lost on them, and what does not go with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from weft.quantities.definitions import PositiveTime, ShortTime, Size, whole
from weft.quantities.example import Example
from weft.scenario.links import LinkName
from weft.scenario.places import KeyProblem
from weft.scenario.values import Section
from weft.topologies import Endpoint, LinkChoice

if TYPE_CHECKING:
    from weft.scenario.options import FabricOptions

_KEY = "link_retry.links"


class LinkRetrySection(Section):
    """Link-level retry (LLR of Ultra Ethernet 1.0). What gets lost on a link is sent again by the port at its near end,
    from the lost frame on, in order.
    """

    links: Annotated[list[LinkName], Example("['p0l*<->p0s*']")] = Field(default=[])
    """Which links, both ways; none: what gets lost is lost. `*<->*`: all."""
    buffer: Annotated[Size | None, Example("256KiB", (".links=['*<->*']",))] = None
    """Most bytes that a port has sent and the far end has not acknowledged: then the port waits. By default what the
    link holds until an acknowledgement comes, and three frames."""
    timeout: Annotated[PositiveTime | None, Example("50us", (".links=['*<->*']",))] = None
    """How long after a frame the port sends it again though the far end says nothing (LLR's replay timer); by default
    twice what an answer takes, and four frames."""
    attempts: Annotated[int, whole(1, 255), Example("3", (".links=['*<->*']",))] = 8
    """How often in a row a port sends again without one frame more arriving. Then the link gives up: what waits for an
    acknowledgement is lost, and the next frame begins anew."""
    response: Annotated[ShortTime, Example("100ns", (".links=['*<->*']",))] = 0
    """How long the far end takes to answer."""

    @model_validator(mode="after")
    def _whole(self) -> LinkRetrySection:
        if not self.links and self.model_fields_set - {"links"}:
            raise ValueError("links: which links send again what gets lost? *<->* are all")
        for name in self.links:
            if not LinkChoice.parse(name).both_ways:
                raise ValueError(f"links: '{name}': acknowledgements come the other way, so name both (<->)")
        return self

    def on(self, end: Endpoint, peer: Endpoint) -> bool:
        """Return whether the link between two ports has retry."""
        return any(LinkChoice.parse(name).takes(end, peer) for name in self.links)


def check_link_retry(options: FabricOptions) -> None:
    """Check that retry goes with the other options. Raises KeyProblem."""
    if not options.link_retry.links:
        return
    for key, why in _reasons(options):
        raise KeyProblem(_KEY, f"link-level retry does not go with {key}: {why}", valid="leave link_retry out")


def _reasons(options: FabricOptions) -> Iterator[tuple[str, str]]:
    if not all(faults.keeps_order_and_number for faults in options.faults.variants):
        yield "faults", "it keeps frames in order and sends each once, so neither duplicate nor delay_probability"
    if options.switching.cut_through:
        yield "switching.mode: cut-through", "only a whole frame can be checked before it is handed on"
    if options.pfc.classes:
        yield "pfc", "a pause waits for frames that are sent again, and headroom is not made for that (credits are)"
