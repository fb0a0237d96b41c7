"""Section of a scenario file on how switches forward, how long they take, and what their program reads."""

from __future__ import annotations

from typing import Literal

from weft.quantities.definitions import ShortTime
from weft.scenario.values import Section


class SwitchingSection(Section):
    """When a switch hands a packet on, and the units in which its program reads queues and times."""

    mode: Literal["store-and-forward", "cut-through"] = "store-and-forward"
    """`store-and-forward`: once its last bit has come. `cut-through`: once its headers have.

    A packet is stored first if it would overtake its own end on a faster link, or if the program parses its payload (a
    contribution to an aggregation).
    """
    latency: ShortTime = 0
    """From then until it is handed on."""
    depth_unit: Literal["cells", "packets"] = "cells"
    """Unit of `enq_qdepth` and `deq_qdepth`, of 19 bits: cells of 80 B, or packets as BMv2 always has them. Cells have
    160 B, 320 B, … where ECN's `kmax` would not fit otherwise, by default beyond 2.6 Tb/s."""
    time_unit: Literal["ns", "us"] = "ns"
    """Unit of timestamps and `deq_timedelta`: nanoseconds, or microseconds as BMv2 always has them."""

    @property
    def cut_through(self) -> bool:
        """Return whether packets are handed on before their last bit has come."""
        return self.mode == "cut-through"

    @property
    def takes_part(self) -> bool:
        """Return whether it makes a difference to when packets are handed on."""
        return self.cut_through or self.latency > 0
