"""The base class of users' controllers, and what their methods are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft.topologies import FabricLink, FabricSpec

if TYPE_CHECKING:
    from weft.clocks.user_controller.controlled_switch import ControlledSwitch


@dataclass(frozen=True)
class PacketIn:
    """A packet that a switch sent to the controller: its bytes, and the fields of the program's packet_in header."""

    payload: bytes
    metadata: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """An entry of a table, with names as in P4Info: short ones where they are unique.

    `match` has a number for an exact key, (value, length) for a prefix, (value, mask) for a ternary one, (low, high)
    for a range. Keys that match anything are left out.
    """

    table: str
    match: Mapping[str, Any]
    action: str
    params: Mapping[str, int]
    priority: int = 0


class Controller:
    """A controller of yours: `controller: mine.py:Class` in a scenario. Weft's own stays beside it.

    Its methods are called one at a time, in the order of what happened, and may call methods of switches, which return
    when the switch has answered. Parameters of `__init__` are the scenario's `controller.parameters`.

    Attributes:
        fabric: hosts, switches, links; there from `on_start` on.
        switches: by name.

    """

    fabric: FabricSpec
    switches: Mapping[str, ControlledSwitch]

    def on_start(self, switch: ControlledSwitch) -> None:
        """Take note that a switch runs its program: once each, before the first packet, and again if it comes back."""

    def on_digest(self, switch: ControlledSwitch, name: str, entries: Sequence[Mapping[str, int]]) -> None:
        """Take digests of one kind: each is the fields of the program's struct."""

    def on_packet_in(self, switch: ControlledSwitch, packet: PacketIn) -> None:
        """Take a packet that the program sent to the CPU port."""

    def on_link(self, link: FabricLink, up: bool) -> None:
        """Take note that a link is down, or up again; Weft has changed its own routes by then."""

    def on_idle_timeout(self, switch: ControlledSwitch, entry: Entry) -> None:
        """Take note that no packet has hit an entry for its `idle_timeout_ns`; it stays until it is deleted."""
