"""What users write in Python: traffic patterns, congestion controls, choices of path."""

from weft.engine import Acknowledgement, ExtensionError
from weft.traffic.extensions.congestion import CongestionControl, PathProperties, congestion_control
from weft.traffic.extensions.loading import ClassSpec, is_user_error, load_class, make, user_report
from weft.traffic.extensions.path_choice import PathChoice, path_choice
from weft.traffic.extensions.pattern import TrafficPattern, flows_of

__all__ = [
    "Acknowledgement",
    "ClassSpec",
    "CongestionControl",
    "ExtensionError",
    "PathChoice",
    "PathProperties",
    "TrafficPattern",
    "congestion_control",
    "flows_of",
    "is_user_error",
    "load_class",
    "make",
    "path_choice",
    "user_report",
]
