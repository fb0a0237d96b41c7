"""Hosts with an IP stack: one whose wire the test reads and writes, or two on a cable."""

from dataclasses import dataclass
from typing import Any

from scapy.layers.l2 import Ether
from scapy.packet import Packet

from weft.engine import Collector, Engine, IpStack, Link, Nic, TransmitPort, _core

RATE_BPS = 10_000_000_000
DELAY_PS = 1_000_000
SECOND_PS = 10**12


@dataclass
class IpHost:
    """Host `index`: 10.0.0.index/24 and fd00::index/64, with 10.0.0.254 and fd00::fe as its gateways."""

    engine: Engine
    index: int
    nic: Nic
    port: TransmitPort
    ip: IpStack
    executor: _core.ScheduleExecutor

    @property
    def mac(self) -> str:
        return f"02:00:00:00:00:{self.index:02x}"

    def address(self, version: int = 4) -> str:
        return f"10.0.0.{self.index}" if version == 4 else f"fd00::{self.index:x}"


def ip_host(engine: Engine, index: int, link: Link, **interface: Any) -> IpHost:
    nic = Nic(engine, f"h{index}")
    port = TransmitPort(engine, link, rate_bps=RATE_BPS)
    mac, addresses = f"02:00:00:00:00:{index:02x}", [f"10.0.0.{index}", f"fd00::{index:x}"]
    nic.add_port(port, mac=mac, addresses=addresses)
    ip = IpStack(nic)
    ip.add_interface(0, **interface)
    for prefix, bits, gateway in (
        ("10.0.0.0", 24, None),
        ("fd00::", 64, None),
        ("10.0.0.0", 8, "10.0.0.254"),
        ("fd00::", 16, "fd00::fe"),
    ):
        ip.add_route(prefix, bits, gateway=gateway)
    return IpHost(engine, index, nic, port, ip, _core.ScheduleExecutor(engine))


@dataclass
class LoneHost:
    """A host and all that it puts on its wire."""

    host: IpHost
    wire: Collector

    def hears(self, frame: Packet) -> None:
        self.host.engine.inject(self.host.nic, 0, bytes(frame))

    def said(self, for_ps: int = SECOND_PS // 1000) -> list[Packet]:
        """Return the frames since the last call, up to so much later."""
        self.host.engine.run_for(for_ps)
        frames = [Ether(data) for _, _, data in self.wire.packets]
        self.wire.clear()
        return frames


def lone_host(**interface: Any) -> LoneHost:
    engine = Engine(seed=1)
    link, wire = Link(engine), Collector(engine)
    link.connect(wire)
    return LoneHost(ip_host(engine, 1, link, **interface), wire)


def cabled_hosts(**interface: Any) -> tuple[IpHost, IpHost]:
    engine = Engine(seed=1)
    there, back = Link(engine, delay_ps=DELAY_PS), Link(engine, delay_ps=DELAY_PS)
    a, b = ip_host(engine, 1, there, **interface), ip_host(engine, 2, back, **interface)
    there.connect(b.nic)
    back.connect(a.nic)
    return a, b


def is_balanced(engine: Engine) -> bool:
    """Whether every packet that entered has ended somewhere, and nothing is under way."""
    counts = engine.packet_conservation()
    return counts["missing"]["packets"] == 0 and counts["missing"]["bytes"] == 0
