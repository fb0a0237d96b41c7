"""Calibration: fits keys of a scenario to times that nccl-tests or rccl-tests measured."""

from weft.calibration.fit import Calibration, KeyFit, calibrate
from weft.calibration.held_out import HoldOut
from weft.calibration.logs import MeasuredTable, Measurement, read_log

__all__ = [
    "Calibration",
    "HoldOut",
    "KeyFit",
    "MeasuredTable",
    "Measurement",
    "calibrate",
    "read_log",
]
