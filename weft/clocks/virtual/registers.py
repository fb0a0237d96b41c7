"""Clears switches' registers between runs, so that no run sees an earlier one's values."""

from __future__ import annotations

from collections.abc import Collection

from weft.controller.features.bolt import RAMP_UP_TOKENS
from weft.controller.features.int_md import SAMPLE_COUNTERS
from weft.controller.features.intermediates import STATE as STATE_OF_UGAL
from weft.controller.features.load_balancing import STATE, LoadBalancingSettings
from weft.controller.features.telemetry_int import BYTE_COUNTERS
from weft.switch.native import NativeSwitch


def registers_of_runs(balancing: LoadBalancingSettings, *, has_intermediates: bool = False) -> frozenset[str]:
    """Return the names of those that runs leave their traces in.

    INT stamps bytes sent in units of 128 B: what a run before has left below a unit would show in every rate that HPCC
    computes. Bolt's flows leave places behind that the next run's would take.
    """
    # A run takes the same packets of its flows, whatever has run before.
    always = {BYTE_COUNTERS, SAMPLE_COUNTERS, RAMP_UP_TOKENS}
    if has_intermediates:
        return frozenset({*always, *STATE, *STATE_OF_UGAL})
    return frozenset(always if balancing == LoadBalancingSettings() else {*always, *STATE})


def clear_registers(switch: NativeSwitch, names: Collection[str]) -> None:
    """Set registers to zero, those that the switch's program has."""
    if switch.program is None:
        return
    for name in switch.program.register_arrays:
        if name.rpartition(".")[2] in names:
            switch.register_fill(name, 0)
