"""Controllers that users write: their public classes, and what calls them."""

from weft.clocks.user_controller.base import Controller, Entry, PacketIn
from weft.clocks.user_controller.controlled_switch import ControlledSwitch
from weft.clocks.user_controller.switch_profiles import Member

__all__ = ["ControlledSwitch", "Controller", "Entry", "Member", "PacketIn"]
