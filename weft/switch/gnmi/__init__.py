"""gNMI: switches' interfaces, queues and counters in OpenConfig's paths, on the port that serves P4Runtime."""

from weft.switch.gnmi.service import handler

__all__ = ["handler"]
