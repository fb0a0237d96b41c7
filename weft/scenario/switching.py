"""Section of a scenario file on how switches forward, and how long they take."""

from __future__ import annotations

from typing import Literal

from weft.quantities.definitions import ShortTime
from weft.scenario.values import Section


class SwitchingSection(Section):
    """When a switch hands a packet on."""

    mode: Literal["store-and-forward", "cut-through"] = "store-and-forward"
    """`store-and-forward`: once its last bit has come. `cut-through`: once its headers have.

    A packet onto a link so fast that it would overtake its own end is stored first, and so is one whose payload the
    program parses (a contribution to an aggregation).
    """
    latency: ShortTime = 0
    """From then until it is handed on."""

    @property
    def cut_through(self) -> bool:
        """Return whether packets are handed on before their last bit has come."""
        return self.mode == "cut-through"
