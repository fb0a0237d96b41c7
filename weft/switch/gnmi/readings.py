"""Readings of a switch and its ports for gNMI: a reading fetches each counter once, and only if a leaf needs it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from weft.port_monitor import is_enabled
from weft.quantities.counter_names import ECN_MARKED
from weft.switch.backend import NotReadyError
from weft.switch.daemon.port_service import PortKey
from weft.switch.daemon.stats import SwitchPortStats
from weft.switch.daemon.wired_switches import WiredPort, WiredSwitch

if TYPE_CHECKING:
    from weft.engine._core import BufferStats, ClassStats, PfcClassStats

_COUNTED_AT_THE_PORT = ("program_egress",)
"""Reasons for losses that the egress port counts as well."""


def interface_name(switch: str, number: int, interface: str | None) -> str:
    """Return a port's name in gNMI: its interface's, or SWITCH:NUMBER at a link between switches without interfaces.

    The names differ throughout a lab: the kernel refuses interfaces with a colon in their name.
    """
    return f"{switch}:{number}" if interface is None else interface


class PortReading:
    """One port at the time of a reading."""

    def __init__(self, switch: SwitchReading, number: int, port: WiredPort) -> None:
        self.switch = switch
        self.number = number
        self.wired = port
        self.name = interface_name(switch.name, number, port.config.interface)

    @cached_property
    def stats(self) -> SwitchPortStats:
        """Counters of the port."""
        return self.wired.stats()

    @property
    def is_up(self) -> bool:
        """Whether the port can send: its interface has a carrier, or its link between switches works."""
        return self.switch.ups.get((self.switch.device_id, self.number), self.wired.transmit.is_up)

    @property
    def is_enabled(self) -> bool:
        """Whether the port's interface is set up (`ip link set … up`); ports without an interface always are."""
        return self.wired.config.interface is None or is_enabled(self.wired.config.interface)

    @cached_property
    def received(self) -> tuple[int, int]:
        """Frames and bytes that have reached the switch by this port."""
        link = self.wired.uplink_link or self.wired.arriving
        if link is not None:
            delivered = link.stats()
            return delivered["delivered_packets"], delivered["delivered_bytes"]
        socket = self.stats.get("socket")
        return (socket["received_packets"], socket["received_bytes"]) if socket is not None else (0, 0)

    @cached_property
    def checksum_errors(self) -> int:
        """Frames dropped on arrival for a wrong bit."""
        link = self.wired.uplink_link or self.wired.arriving
        return 0 if link is None else link.stats()["corrupted_packets"]

    @property
    def receive_errors(self) -> int:
        """Frames that arrived with a wrong bit, too short, or too long."""
        socket = self.stats.get("socket")
        of_socket = 0 if socket is None else socket["truncated_packets"] + socket["runt_packets"]
        return self.checksum_errors + of_socket

    @property
    def receive_discards(self) -> int:
        """Frames without an error that were lost on their way in: by the kernel's ring, the PFC watchdog, or the
        switch's pipeline.
        """
        socket = self.stats.get("socket")
        of_watchdog = self.stats["transmit"]["storm_arrival_dropped"]["packets"]
        of_socket = 0 if socket is None else socket["ring_dropped_packets"]
        return of_socket + of_watchdog + self.switch.losses.get(self.number, 0)

    @property
    def send_discards(self) -> int:
        """Packets that the port has dropped instead of sending them."""
        transmit = self.stats["transmit"]
        return (
            transmit["tail_dropped"]["packets"]
            + transmit["headroom_dropped"]["packets"]
            + transmit["down_dropped"]["packets"]
            + transmit["egress_dropped"]["packets"]
            + transmit["trim_dropped"]["packets"]
            + transmit["storm_dropped"]["packets"]
        )

    @property
    def send_errors(self) -> int:
        """Packets that the port's interface refused: longer than its MTU, or while it was down."""
        socket = self.stats.get("socket")
        return 0 if socket is None else socket["oversize_packets"] + socket["interface_down_packets"]

    @property
    def marked(self) -> int | None:
        """Packets marked (CE); None if the program does not count them."""
        marks = self.switch.marks
        return None if marks is None or self.number >= len(marks) else marks[self.number]

    def queue(self, priority_class: int) -> ClassStats:
        """Return the counters of a class's queue."""
        return self.stats["transmit"]["classes"][priority_class]

    def pfc(self, priority_class: int) -> PfcClassStats | None:
        """Return the counters of a class's pauses; None without flow control by pauses."""
        mac = self.stats.get("mac")
        classes = None if mac is None else mac["pfc"]
        return None if classes is None else classes[priority_class]


class SwitchReading:
    """One switch at the time of a reading; hold its engine's lock, so that all counters are of one moment.

    `ups`: the last known states of ports with an interface, by device id and number.
    """

    def __init__(self, wired: WiredSwitch, ups: Mapping[PortKey, bool]) -> None:
        self.wired = wired
        self.ups = ups
        self.name = wired.config.name
        self.device_id = wired.config.device_id
        readings = (PortReading(self, number, port) for number, port in wired.ports.items())
        self.ports = {reading.name: reading for reading in readings}

    @cached_property
    def drops(self) -> dict[str, int]:
        """Packets that the switch dropped, by reason."""
        return self.wired.switch.drops()

    @cached_property
    def losses(self) -> dict[int, int]:
        """Packets lost in the switch by ingress port, without those that an egress port counts."""
        found: dict[int, int] = {}
        for loss in self.wired.switch.losses():
            if not loss.is_copy and loss.reason not in _COUNTED_AT_THE_PORT:
                found[loss.port] = found.get(loss.port, 0) + loss.packets
        return found

    @cached_property
    def buffer(self) -> BufferStats | None:
        """The memory that ports share, if any."""
        return None if self.wired.buffer is None else self.wired.buffer.stats()

    @cached_property
    def marks(self) -> list[int] | None:
        """Marked packets by egress port; None without a program that counts them."""
        switch = self.wired.switch
        program = switch.program
        if program is None:
            return None
        name = next((each for each in program.counter_arrays if each.rpartition(".")[2] == ECN_MARKED), None)
        if name is None:
            return None
        try:
            return [cell.packets for cell in switch.counter_read_all(name)]
        except NotReadyError:  # the program has been replaced meanwhile
            return None
