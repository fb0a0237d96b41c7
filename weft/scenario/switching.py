"""Section of a scenario file on how switches forward, and how long they take."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weft.scenario.values import Section, TimePs


class SwitchingSection(Section):
    """When a switch hands a packet on.

    `store-and-forward`: `latency` after its last bit has come. `cut-through`: `latency` after its headers have, unless
    the line that it leaves by is so fast that it would overtake its end; a packet whose payload the program parses (a
    contribution to an aggregation) is stored first.
    """

    mode: Literal["store-and-forward", "cut-through"] = "store-and-forward"
    latency: Annotated[TimePs, Field(le=10**12)] = 0

    @property
    def cut_through(self) -> bool:
        """Return whether packets are handed on before their last bit has come."""
        return self.mode == "cut-through"
