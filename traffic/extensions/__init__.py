"""What users write in Python: traffic patterns, congestion controls, choices of path."""

from traffic.extensions.loading import ClassSpec, ExtensionError, load_class, make
from traffic.extensions.pattern import TrafficPattern, flows_of

__all__ = ["ClassSpec", "ExtensionError", "TrafficPattern", "flows_of", "load_class", "make"]
