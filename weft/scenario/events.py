"""What happens to a fabric while it runs: links that fail and come back."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from weft.quantities.definitions import Time
from weft.scenario.links import LinkName
from weft.scenario.values import Section
from weft.topologies import LinkChoice


def _both_ways(text: str) -> str:
    if not LinkChoice.parse(text).both_ways:
        raise ValueError(f"'{text}' is one direction, and a link fails in both (valid: NODE<->NODE)")
    return text


class LinkEventSection(Section):
    """A link, or several (p0s1<->*: a whole switch), fails or comes back."""

    link: Annotated[LinkName, AfterValidator(_both_ways)]
    """Which: p0l0<->p0s1, all links between two nodes; p0l0:3<->p0s1:1, one of parallel links."""
    state: Literal["down", "up"]
    """It fails (`down`) or comes back (`up`)."""
    at: Time | None = None
    """When, from when the fabric is up. Without it, it is down from the start, before the first packet."""
