"""What users write: traffic patterns, congestion controls and choices of path in Python, controls in C++, too."""

from weft.engine import Acknowledgement, CongestionNeeds, ExtensionError
from weft.traffic.extensions.congestion import (
    CongestionControl,
    PathProperties,
    congestion_control,
    congestion_needs,
)
from weft.traffic.extensions.loading import ClassSpec, is_user_error, load_class, make, user_code, user_report
from weft.traffic.extensions.native import engine_name
from weft.traffic.extensions.path_choice import PathChoice, path_choice
from weft.traffic.extensions.pattern import TrafficPattern, flows_of
from weft.traffic.extensions.program import load_program, run_program

__all__ = [
    "Acknowledgement",
    "ClassSpec",
    "CongestionControl",
    "CongestionNeeds",
    "ExtensionError",
    "PathChoice",
    "PathProperties",
    "TrafficPattern",
    "congestion_control",
    "congestion_needs",
    "engine_name",
    "flows_of",
    "is_user_error",
    "load_class",
    "load_program",
    "make",
    "path_choice",
    "run_program",
    "user_code",
    "user_report",
]
