"""Views of labs in virtual time."""

from weft.clocks.lab import Lab
from weft.live.contents import Contents, SwitchReader
from weft.live.view import LiveView
from weft.metrics.of_lab import LabMetrics


def reader_in_virtual_time(lab: Lab) -> SwitchReader:
    """Return what reads switches by the controller's own sessions: no other connection leads into virtual time."""
    return lambda switch, action: lab.controller.call(action(lab.controller.session(switch)))


def view_of(lab: Lab) -> LiveView:
    """Return a view that is sampled by hand."""
    return LiveView(lab, LabMetrics(lab).families, Contents(reader_in_virtual_time(lab)))
