"""Weft: scenarios, back ends, runs and reports; the `weft` command and its Python API."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError, WeftError

if TYPE_CHECKING:
    from weft.clocks.user_controller import ControlledSwitch, Controller
    from weft.report.plots import Plot, PlotCurve, plot, plots
    from weft.run.collectives import CollectiveRequest, CollectiveRun
    from weft.run.fabric import Fabric
    from weft.sweeps import SweepResult, sweep
    from weft.traffic.clear_to_send import ClearToSend
    from weft.traffic.collectives import Algorithm, Collective
    from weft.traffic.extensions import (
        Acknowledgement,
        CongestionControl,
        CongestionNeeds,
        PathChoice,
        PathProperties,
        TrafficPattern,
    )
    from weft.traffic.patterns import Flow
    from weft.traffic.programs import ScriptedHost

__all__ = [
    "Acknowledgement",
    "Algorithm",
    "BadInputError",
    "CheckFailedError",
    "ClearToSend",
    "Collective",
    "CollectiveRequest",
    "CollectiveRun",
    "CongestionControl",
    "CongestionNeeds",
    "ControlledSwitch",
    "Controller",
    "EnvironmentLacksError",
    "Fabric",
    "Flow",
    "PathChoice",
    "PathProperties",
    "Plot",
    "PlotCurve",
    "ScriptedHost",
    "SweepResult",
    "TrafficPattern",
    "WeftError",
    "plot",
    "plots",
    "sweep",
]

# Importing these takes most of a second, too long for commands such as `weft clean`.
_IMPORTED_LATE = {
    "Acknowledgement": "weft.traffic.extensions",
    "CollectiveRequest": "weft.run.collectives",
    "CollectiveRun": "weft.run.collectives",
    "Algorithm": "weft.traffic.collectives",
    "ClearToSend": "weft.traffic.clear_to_send",
    "Collective": "weft.traffic.collectives",
    "CongestionControl": "weft.traffic.extensions",
    "CongestionNeeds": "weft.traffic.extensions",
    "ControlledSwitch": "weft.clocks.user_controller",
    "Controller": "weft.clocks.user_controller",
    "Fabric": "weft.run.fabric",
    "Flow": "weft.traffic.patterns",
    "PathChoice": "weft.traffic.extensions",
    "PathProperties": "weft.traffic.extensions",
    "Plot": "weft.report.plots",
    "PlotCurve": "weft.report.plots",
    "ScriptedHost": "weft.traffic.programs",
    "plot": "weft.report.plots",
    "plots": "weft.report.plots",
    "sweep": "weft.sweeps",
    "SweepResult": "weft.sweeps",
    "TrafficPattern": "weft.traffic.extensions",
}


def __getattr__(name: str) -> Any:
    if name in _IMPORTED_LATE:
        return getattr(importlib.import_module(_IMPORTED_LATE[name]), name)
    raise AttributeError(f"module 'weft' has no attribute '{name}'")


def __dir__() -> list[str]:
    # Only the public names, so that completion also offers names imported late, and no internal ones.
    return sorted(__all__)
