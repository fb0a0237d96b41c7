"""Controllers that users write: their public classes, and what calls them."""

from weft.clocks.user_controller.base import Controller, Entry, PacketIn
from weft.clocks.user_controller.controlled_switch import ControlledSwitch

__all__ = ["ControlledSwitch", "Controller", "Entry", "PacketIn"]
