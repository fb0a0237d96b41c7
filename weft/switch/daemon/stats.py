"""The counters of embedded switches: what `WiredSwitches.stats` returns, and the daemon's answer to `stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

from weft.switch.drop_sites import Outcome

if TYPE_CHECKING:
    from weft.engine._core import BufferStats, Lateness, LinkStats, PacketSocketStats, PortMacStats, PortStats


class SwitchPortStats(TypedDict):
    """A port: its queue, the link that it sends into, and the parts that not every port has.

    `uplink` and `uplink_link` are a host's way into the switch; the links have the injected faults.
    """

    transmit: PortStats
    link: LinkStats
    uplink: NotRequired[PortStats]
    uplink_link: NotRequired[LinkStats]
    socket: NotRequired[PacketSocketStats]
    mac: NotRequired[PortMacStats]


class SwitchLoss(TypedDict):
    """Packets that ended in a switch: why, and the port by which they had come. Not what a port's queue refused.

    `is_copy`: they were copies of others. Where the program dropped them, the rest says what marked them
    (`weft.switch.drop_sites.DropSite`), if it is known.
    """

    reason: str
    port: int
    packets: int
    is_copy: bool
    table: str
    action: str
    outcome: Outcome
    source: str


class SwitchStats(TypedDict):
    """A switch: drops by reason and by place, ports by number (as text, as in JSON), the memory that they share."""

    device_id: int
    received_packets: int
    drops: dict[str, int]
    losses: list[SwitchLoss]
    ports: dict[str, SwitchPortStats]
    buffer: BufferStats | None


class SwitchesStats(TypedDict):
    """Every switch by name, and how late a real clock's engine served its events."""

    now_ps: int
    lateness: Lateness
    switches: dict[str, SwitchStats]
