"""What happens to a fabric while it runs: links that fail and come back."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from weft.scenario.links import LinkChoice, LinkName
from weft.scenario.values import Section, TimePs


def _both_ways(text: str) -> str:
    if not LinkChoice.parse(text).both_ways:
        raise ValueError(f"'{text}' is one direction, and a link fails in both; valid: NODE<->NODE")
    return text


class LinkEventSection(Section):
    """A link (p0l0<->p0s1), or several (p0s1<->*: a whole switch), fails (`down`) or comes back (`up`).

    `at`: that time after the fabric is up. Without it, it is down from the start, before the first packet.
    """

    link: Annotated[LinkName, AfterValidator(_both_ways)]
    state: Literal["down", "up"]
    at: TimePs | None = None
