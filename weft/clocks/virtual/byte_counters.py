"""INT's counters of bytes sent, from zero for every run."""

from __future__ import annotations

from weft.controller.features.telemetry_int import BYTE_COUNTERS
from weft.switch.native import NativeSwitch


def clear_byte_counters(switch: NativeSwitch) -> None:
    """Set them to zero, if the switch's program has them.

    Stamps count them in units of 128 B: what a run before has left below a unit would show in every rate that HPCC
    computes.
    """
    if switch.program is None:
        return
    for name in switch.program.register_arrays:
        if name.rpartition(".")[2] == BYTE_COUNTERS:
            switch.register_fill(name, 0)
