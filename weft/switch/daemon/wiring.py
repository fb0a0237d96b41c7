"""Connects the daemon's switches to interfaces, in real time.

A host's frames enter through a paced uplink port and a link, because a host's interface has neither rate nor
delay. Frames between switches are paced and delayed by their sender.
"""

from __future__ import annotations

import contextlib
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path

from weft.engine import Engine, PacketSocket
from weft.port_monitor import PortMonitor
from weft.quantities.units import PS_PER_US
from weft.switch.backend import NotReadyError
from weft.switch.daemon.config import DaemonConfig
from weft.switch.daemon.port_service import PortBoard
from weft.switch.daemon.process import Repeater
from weft.switch.daemon.wired_switches import WiredPort, WiredSwitch, WiredSwitches
from weft.switch.native.trace import MANY_PACKETS
from weft.switch.trace.log_file import PacketLogFile

_LOGGER = logging.getLogger(__name__)
FLUSH_INTERVAL_S = 0.2
"""Longest time that a capture lags behind the traffic."""


class Wiring(WiredSwitches):
    """All switches of a configuration. Raises OSError if an interface cannot be opened."""

    def __init__(self, config: DaemonConfig) -> None:
        self.engine = Engine.real_clock(epoch_ns=config.epoch_ns, dilation=config.dilation, seed=config.seed)
        super().__init__(self.engine, config.switches, config.internal_links)
        self._packet_logs: dict[int, PacketLogFile] = {}
        self._flusher = Repeater(self._flush, FLUSH_INTERVAL_S)
        self._port_monitor: PortMonitor | None = None
        self.board = PortBoard()
        self._open_sockets()

    def _open_sockets(self) -> None:
        ends = [
            (port.config.interface, port, wired)
            for wired in self.switches.values()
            for port in wired.ports.values()
            if port.config.interface is not None
        ]
        with _waiting_threads() as threads:
            sockets = threads.map(partial(PacketSocket, self.engine), [interface for interface, *_ in ends])
            for (_, port, wired), socket in zip(ends, sockets, strict=True):
                self._join(port, wired, socket)

    def _join(self, port: WiredPort, wired: WiredSwitch, socket: PacketSocket) -> None:
        port.socket = socket
        port.link.connect(socket)
        if port.uplink_link is None:
            wired.lead_to(port.config.port, socket)
            return
        # The host's endpoint paces its own frames; other programs of the host are held to the rate here.
        port.uplink = self.make_transmit(self.engine, port.config, port.uplink_link, arrivals_serialised=True)
        socket.connect(port.uplink)

    def start(self, realtime_priority: int = 0) -> None:
        """Start the engine's thread under SCHED_FIFO, or as a normal thread if that is not permitted."""
        try:
            # The thread sleeps most of the time. At an ordinary priority the kernel may let it wait for milliseconds
            # once cores are busy: at a dilation of 1,000 a whole round trip.
            self.engine.start(realtime_priority=realtime_priority)
        except PermissionError as error:
            _LOGGER.warning("the engine runs without a realtime priority, so it is late more often: %s", error)
            self.engine.start()
        self._flusher.start()
        self._port_monitor = PortMonitor(
            {
                each.interface: partial(self._set_port_up, wired, each.port)
                for wired in self.switches.values()
                for each in wired.config.ports
                if each.interface is not None
            }
        )
        self._port_monitor.start()

    def log_packets(self, wired: WiredSwitch, path: Path) -> None:
        """Log the steps of each packet of a switch to a file from now on, also after a change of program.

        Raises OSError if the file cannot be created or already exists.
        """
        origin_us = _local_day_us() - self.engine.now_ps // PS_PER_US
        log = PacketLogFile(path, origin_us)
        trace = wired.switch.trace
        trace.from_first, trace.keeps_before_load = MANY_PACKETS, True
        # A switch without a program starts with its first one.
        with contextlib.suppress(NotReadyError):
            trace.start()
        self._packet_logs[wired.config.device_id] = log

    def _flush(self) -> None:
        self.flush_captures()
        for number, log in list(self._packet_logs.items()):
            switch = self.switches[number].switch
            for program, packets in switch.trace.take_by_program():
                log.write(program, packets, switch.trace.packets_missed)

    def finish_files(self) -> dict[str, int]:
        """Write captures and packet logs for the last time; return `incomplete_captures`."""
        self._flusher.stop()
        self._flush()
        return self.incomplete_captures()

    def incomplete_captures(self) -> dict[str, int]:
        """Return incomplete captures, and incomplete packet logs."""
        logs = {str(log.path): log.error for log in self._packet_logs.values() if log.error}
        return super().incomplete_captures() | logs

    def _set_port_up(self, wired: WiredSwitch, port: int, up: bool) -> None:
        wired.set_port_up(port, up)
        self.board.set_up(wired.config.device_id, port, up)

    def close(self) -> None:
        """Stop the engine, close captures and sockets."""
        self._flusher.stop()
        self._flush()
        for log in self._packet_logs.values():
            log.close()
        if self._port_monitor is not None:
            self._port_monitor.stop()
        self.engine.stop()
        try:
            super().close()
        finally:
            ports = [port for wired in self.switches.values() for port in wired.ports.values()]
            with _waiting_threads() as threads:
                list(threads.map(PacketSocket.close, [port.socket for port in ports if port.socket is not None]))


def _local_day_us() -> int:
    """Return the time of day in microseconds in the machine's time zone, as in logs."""
    now = datetime.now().astimezone()
    return round((now - now.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds() * 10**6)


def _waiting_threads() -> ThreadPoolExecutor:
    """Return threads to open and close sockets, which wait for the kernel in parallel."""
    return ThreadPoolExecutor(max_workers=64)
