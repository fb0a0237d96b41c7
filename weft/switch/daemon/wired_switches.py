"""Switches under one clock: their ports, and the internal links between them.

Callers connect the far ends of other ports: packet sockets or hosts' NICs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.engine import Engine, Link, PacketSocket, PcapWriter, PortMac, SharedBuffer, TransmitPort
from weft.switch.daemon.config import FaultsConfig, PfcConfig, PortConfig, SwitchConfig, TrimmingConfig
from weft.switch.daemon.placement import Placement
from weft.switch.daemon.stats import SwitchesStats, SwitchLoss, SwitchPortStats, SwitchStats
from weft.switch.drop_sites import Loss
from weft.switch.native import NativeSwitch
from weft.switch.p4runtime.device import Device


@dataclass(slots=True)
class WiredPort:
    """The engine's parts of one port.

    `uplink` and `uplink_link` exist only for hosts, `socket` only for interfaces, `mac` only with flow control or a
    switch latency; `arriving` is the internal link that leads here.
    """

    config: PortConfig
    transmit: TransmitPort
    link: Link
    mac: PortMac | None = None
    socket: PacketSocket | None = None
    uplink: TransmitPort | None = None
    uplink_link: Link | None = None
    arriving: Link | None = None
    captures: tuple[PcapWriter, ...] = ()
    received: PcapWriter | None = None

    def arrive_by(self, link: Link) -> None:
        """Receive from another internal link from now on; a capture continues with it."""
        self.arriving = link
        if self.received is not None:
            link.set_capture(self.received)

    def stats(self) -> SwitchPortStats:
        """Return the counters of all parts."""
        stats: SwitchPortStats = {"transmit": self.transmit.stats(), "link": self.link.stats()}
        if self.uplink is not None:
            stats["uplink"] = self.uplink.stats()
        if self.uplink_link is not None:
            stats["uplink_link"] = self.uplink_link.stats()
            if (retry := self.uplink_link.retry_stats()) is not None:
                stats["uplink_retry"] = retry
        if (retry := self.link.retry_stats()) is not None:
            stats["retry"] = retry
        if self.socket is not None:
            stats["socket"] = self.socket.stats()
        if self.mac is not None:
            stats["mac"] = self.mac.stats()
        return stats

    def reset_stats(self) -> None:
        """Reset counters and largest depths to zero."""
        for part in (self.transmit, self.link, self.uplink, self.uplink_link, self.socket, self.mac):
            if part is not None:
                part.reset_stats()

    def faulty_links(self) -> Iterator[tuple[str, Link]]:
        """Yield links with faults, each with the suffix of its name."""
        if self.config.faults.any:
            yield "out", self.link
        if self.uplink_link is not None and self.config.uplink_faults.any:
            yield "in", self.uplink_link

    def set_capture(self, path: Path | None, interface: str = "", without_shims: bool = False) -> None:
        """Capture the frames that the port sends and receives to a file, or stop (None); pcapng names it `interface`.

        `without_shims` writes IP frames as if they had been sent without Weft's shims.
        Raises OSError if the file cannot be created, or if the previous one is incomplete (a full disk).
        """
        writer = None
        if path is not None:
            writer = PcapWriter(
                str(path),
                interface=interface,
                description=self.config.interface or "",
                rate_bps=self.config.rate_bps,
                without_shims=without_shims,
            )
        self._capture(writer, writer)

    def capture_by_direction(self, directory: Path, origin_ns: int, without_shims: bool = False) -> None:
        """Capture to INTERFACE_in.pcap and INTERFACE_out.pcap as BMv2 does; time 0 is dated `origin_ns`.

        `without_shims` writes IP frames as if they had been sent without Weft's shims.
        """
        received, sent = (
            PcapWriter(
                str(directory / f"{self.config.interface}_{direction}.pcap"),
                origin_ns=origin_ns,
                without_shims=without_shims,
            )
            for direction in ("in", "out")
        )
        self._capture(received, sent)

    def _capture(self, received: PcapWriter | None, sent: PcapWriter | None) -> None:
        if self.socket is not None:
            self.socket.set_capture(received, sent)
        else:
            self.transmit.set_capture(sent)
            arriving = self.uplink_link or self.arriving
            if arriving is not None:
                arriving.set_capture(received)
        self.received = received
        before, self.captures = self.captures, tuple(each for each in (received, sent) if each is not None)
        failure: OSError | None = None
        for writer in before:
            try:
                writer.close()
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure


@dataclass(slots=True)
class WiredSwitch:
    """A switch and its ports by number."""

    config: SwitchConfig
    switch: NativeSwitch
    ports: dict[int, WiredPort] = field(default_factory=dict)
    buffer: SharedBuffer | None = None

    def lead_to(self, number: int, source: Link | PacketSocket) -> None:
        """Connect a link or a socket to a port; only a link can deliver a frame's first bit early."""
        if isinstance(source, Link) and self.config.switching is not None:
            source.set_early(self.config.switching.cut_through)
        mac = self.ports[number].mac
        if mac is None:
            source.connect(self.switch.native, number)
        else:
            source.connect(mac)

    def add_far_end(self, number: int, link: Link) -> int:
        """Add a port as a far end of a link, to which the link may be joined; return the far end's number."""
        mac = self.ports[number].mac
        return link.add_far_end(self.switch.native, number) if mac is None else link.add_far_end(mac)

    def set_port_up(self, number: int, up: bool) -> None:
        """Tell the switch that a port has lost or regained its carrier.

        The queue of a lost port with flow control is dropped, as it would block all queues behind it.
        """
        port = self.ports[number]
        if port.mac is not None and up != port.transmit.is_up:
            with self.switch.engine.lock():
                port.transmit.set_up(up)
                if up:
                    port.mac.restart()
        self.switch.set_port_up(number, up)

    def device(self, clock_ns: Callable[[], int] = time.time_ns) -> Device:
        """Return a P4Runtime device for the switch; `clock_ns` timestamps its reports to controllers."""
        return Device(
            self.config.device_id,
            self.switch,
            self.config.cpu_port,
            clock_ns,
            port_names=self.config.interfaces_by_name,
            port_numbers=self.ports.keys(),
        )

    def stats(self) -> SwitchStats:
        """Return drops by reason, and the counters of every port."""
        return {
            "device_id": self.config.device_id,
            "received_packets": self.switch.native.received_packets,
            "drops": self.switch.drops(),
            "losses": [_loss(each) for each in self.switch.losses()],
            "ports": {str(number): port.stats() for number, port in self.ports.items()},
            "buffer": None if self.buffer is None else self.buffer.stats(),
        }

    def reset_stats(self) -> None:
        """Reset all counters to zero."""
        self.switch.native.reset_drops()
        if self.buffer is not None:
            self.buffer.reset_stats()
        for port in self.ports.values():
            port.reset_stats()


def _trim(port: TransmitPort, trimming: TrimmingConfig) -> None:
    port.set_trimming(
        size_bytes=trimming.size_bytes,
        dscp=trimming.dscp,
        priority_class=trimming.queue,
        classes=trimming.classes,
        trimmable_dscps=trimming.trimmable_dscps,
        reserved_bytes=trimming.reserved_bytes,
    )


def _loss(loss: Loss) -> SwitchLoss:
    site = loss.site
    return {
        "reason": loss.reason,
        "port": loss.port,
        "packets": loss.packets,
        "is_copy": loss.is_copy,
        "table": site.table if site is not None else "",
        "action": site.action if site is not None else "",
        "outcome": site.outcome if site is not None else "",
        "source": site.source if site is not None else "",
    }


class WiredSwitches:
    """Switches by device id. An internal link is (device, port, device, port).

    A host's port has `uplink_link`, on which the host sends to the switch, and `link`, which callers connect to the
    host. `placed`: one engine for all, or the placement of each part.
    """

    def __init__(
        self,
        placed: Engine | Placement,
        switches: Sequence[SwitchConfig],
        internal_links: Sequence[tuple[int, int, int, int]] = (),
    ) -> None:
        self.placement = placed if isinstance(placed, Placement) else Placement.in_one(placed, switches)
        self.switches = {each.device_id: self._make_switch(each) for each in switches}
        for first, first_port, second, second_port in internal_links:
            self._connect(first, first_port, second, second_port)
            self._connect(second, second_port, first, first_port)

    def _make_switch(self, config: SwitchConfig) -> WiredSwitch:
        switch = NativeSwitch(
            self.placement.switches[config.device_id],
            config.name,
            cpu_port=config.cpu_port,
            drop_port=config.drop_port,
            depth_unit=config.depth_unit,
            cell_bytes=config.cell_bytes,
            time_unit=config.time_unit,
        )
        wired = WiredSwitch(config, switch)
        if config.buffer is not None:
            wired.buffer = SharedBuffer(
                switch.engine,
                capacity_bytes=config.buffer.capacity_bytes,
                reserved_bytes=config.buffer.reserved_bytes,
                alpha=config.buffer.alpha,
            )
        for port in config.ports:
            self._add_port(wired, port)
        return wired

    def _add_port(self, wired: WiredSwitch, config: PortConfig) -> None:
        name = f"{wired.config.name}:{config.port}"
        native, engine = wired.switch.native, wired.switch.engine
        link = self._make_link(engine, f"{name} out", config.delay_ps, config.faults)
        port = WiredPort(config, self.make_transmit(engine, config, link), link)
        wired.ports[config.port] = port
        native.attach_port(config.port, port.transmit)
        if wired.buffer is not None:
            wired.buffer.add_port(config.port)
            port.transmit.set_buffer(wired.buffer, config.port)
        if config.trimming is not None:
            _trim(port.transmit, config.trimming)
        if config.retry is not None:
            link.enable_retry(port.transmit, **config.retry.model_dump())
        port.mac = _make_mac(wired, port)
        if config.host_uplink:
            host = self.placement.hosts[wired.config.device_id, config.port]
            port.uplink_link = self._make_link(host, f"{name} in", config.delay_ps, config.uplink_faults)
            wired.lead_to(config.port, port.uplink_link)

    @staticmethod
    def _make_link(engine: Engine, name: str, delay_ps: int, faults: FaultsConfig) -> Link:
        return Link(
            engine,
            name=name,
            delay_ps=delay_ps,
            loss=faults.loss,
            duplicate=faults.duplicate,
            delay_probability=faults.delay_probability,
            extra_delay_ps=faults.extra_delay_ps,
            bit_error_rate=faults.bit_error_rate,
        )

    @staticmethod
    def make_transmit(
        engine: Engine, config: PortConfig, link: Link, arrivals_serialised: bool = False
    ) -> TransmitPort:
        """Return a transmit port with a port's rate and capacity that feeds a link."""
        return TransmitPort(
            engine,
            link,
            rate_bps=config.rate_bps,
            queue_capacity_bytes=config.queue_capacity_bytes,
            quantum_bytes=config.quantum_bytes,
            split_depth_bytes=config.split_depth_bytes,
            arrivals_serialised=arrivals_serialised,
        )

    def _connect(self, sender: int, sender_port: int, receiver: int, receiver_port: int) -> None:
        link = self.switches[sender].ports[sender_port].link
        self.switches[receiver].lead_to(receiver_port, link)
        self.switches[receiver].ports[receiver_port].arriving = link

    def stats(self) -> SwitchesStats:
        """Return the counters of every switch by name, and how late a real clock's engine served its events."""
        clock = self.placement.clock
        with clock.lock():
            return {
                "now_ps": clock.now_ps,
                "lateness": clock.lateness(),
                "switches": {wired.config.name: wired.stats() for wired in self.switches.values()},
            }

    def reset_stats(self) -> None:
        """Reset counters, largest depths and lateness to zero."""
        with self.placement.clock.lock():
            for wired in self.switches.values():
                wired.reset_stats()
            self.placement.clock.reset_lateness()

    def incomplete_captures(self) -> dict[str, int]:
        """Return the capture files that could not be written completely, each with its errno."""
        writers = (
            writer for wired in self.switches.values() for port in wired.ports.values() for writer in port.captures
        )
        return {writer.path: writer.error for writer in writers if writer.error}

    def restart_draws(self, number: int = 0) -> None:
        """Restart the random streams of switches and faulty links: their first stream (0), or another one."""
        suffix = f" draw {number}" if number else ""
        with self.placement.clock.lock():
            for wired in self.switches.values():
                name, native, stream = wired.config.name, wired.switch.native, wired.switch.engine.stream
                native.draw_from(stream(f"switch/{name}{suffix}"))
                for port in wired.ports.values():
                    for way, link in port.faulty_links():
                        link.draw_from(stream(f"link {name}:{port.config.port} {way}{suffix}"))

    def flush_captures(self) -> None:
        """Flush all captures, so that their files can be read."""
        for wired in self.switches.values():
            for port in wired.ports.values():
                for writer in port.captures:
                    writer.flush()

    def close(self) -> None:
        """Close all captures. Raises OSError, when all are closed, if a file is incomplete."""
        failure: OSError | None = None
        for wired in self.switches.values():
            for port in wired.ports.values():
                try:
                    port.set_capture(None)
                except OSError as error:
                    failure = failure or error
        if failure is not None:
            raise failure


def _make_mac(wired: WiredSwitch, port: WiredPort) -> PortMac | None:
    """Return the port's MAC; None without flow control and latency, as it would do nothing."""
    switching, pfc, credits = wired.config.switching, port.config.pfc, port.config.credits
    if switching is None and pfc is None and credits is None:
        return None
    native = wired.switch.native
    mac = PortMac(wired.switch.engine, port.transmit, native, port.config.port)
    if switching is not None:
        mac.set_switching(latency_ps=switching.latency_ps, cut_through=switching.cut_through, parsed_by=native)
    if port.config.interface is not None and wired.config.class_of_dscp:
        mac.classify_by_dscp(wired.config.class_of_dscp)
    if pfc is not None:
        assert wired.buffer is not None
        _enable_pfc(mac, port.config.port, pfc, wired.buffer)
    if credits is not None:
        assert wired.buffer is not None
        mac.enable_credits(**credits.model_dump())
        for lane in credits.classes:
            mac.set_credit_memory(wired.buffer, port.config.port, lane)
    return mac


def _enable_pfc(mac: PortMac, number: int, pfc: PfcConfig, buffer: SharedBuffer) -> None:
    mac.enable_pfc(source_mac=pfc.source_mac, pause_quanta=pfc.pause_quanta)
    for priority_class in pfc.classes:
        mac.set_pause_limits(
            buffer,
            number,
            priority_class,
            headroom_bytes=pfc.headroom_bytes,
            xoff_bytes=pfc.xoff_bytes,
            alpha=pfc.alpha,
            hysteresis_bytes=pfc.hysteresis_bytes,
        )
    if pfc.watchdog is not None:
        mac.enable_watchdog(classes=list(pfc.classes), **pfc.watchdog.model_dump())
