"""Types of embedded switches' counters, as returned by `WiredSwitches.stats` and the daemon's `stats` command."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

from weft.switch.drop_sites import Outcome

if TYPE_CHECKING:
    from weft.engine._core import (
        BufferStats,
        Lateness,
        LinkRetryStats,
        LinkStats,
        PacketSocketStats,
        PortMacStats,
        PortStats,
    )


class SwitchPortStats(TypedDict):
    """Counters of a port: its queue, its outgoing link, and parts that not every port has.

    `uplink` and `uplink_link` lead from a host into the switch; links count the injected faults, `retry` and
    `uplink_retry` what was sent again on `link` and `uplink_link`.
    """

    transmit: PortStats
    link: LinkStats
    uplink: NotRequired[PortStats]
    uplink_link: NotRequired[LinkStats]
    retry: NotRequired[LinkRetryStats]
    uplink_retry: NotRequired[LinkRetryStats]
    socket: NotRequired[PacketSocketStats]
    mac: NotRequired[PortMacStats]


class SwitchLoss(TypedDict):
    """Packets lost in a switch, with reason and ingress port; packets that a port's queue refused are not included.

    `is_copy`: they were copies. If the program dropped them, the other fields describe what marked them
    (`weft.switch.drop_sites.DropSite`), if known.
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
    """Counters of a switch: drops by reason and by place, ports by number (as text for JSON), shared memory."""

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
