"""UDP: sources send to sinks at a constant rate or in bursts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from weft.quantities.definitions import PositiveTime, Rate, number, whole
from weft.quantities.readable import counted
from weft.quantities.section import Section
from weft.quantities.units import PS_PER_S
from weft.results.plain_hosts import UDP_FLOWS
from weft.results.plain_hosts_model import UdpResult
from weft.run.plain_hosts import udp_task
from weft.run.plain_items import HostPairs, PlainItem, check_pairs, pairs_of
from weft.scenario.places import KeyProblem
from weft.topologies import FabricSpec
from weft.traffic.programs import UdpLoad
from weft.wire.headers.roce import ROCE_UDP_PORT

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task

_ECN = {"not-ect": 0, "ect1": 1, "ect0": 2}
_MOST_DATAGRAMS = 100_000_000
_MOST_PERIODS = 10_000_000
_PORTS_END = 49152
"""First of the dynamic ports, which sources use (RFC 6335, section 6)."""


class BurstsSection(Section):
    """Alternating periods in which a source sends at its rate and is silent, drawn from the seed."""

    distribution: Literal["exponential", "pareto"] = "exponential"
    """Distribution of both periods' lengths."""
    on: PositiveTime
    """Mean length of a sending period."""
    off: PositiveTime
    """Mean length of a silent period."""
    shape: Annotated[float, number(1, 100, above=True, example="1.5")] = 1.5
    """Shape of the Pareto distribution: the nearer to 1, the heavier its tail."""

    def least_ps(self) -> float:
        """Return the time of a burst and the silence after it: the mean, or the minimum of a Pareto distribution."""
        mean_ps = self.on + self.off
        return mean_ps * (self.shape - 1) / self.shape if self.distribution == "pareto" else mean_ps


class UdpTraffic(PlainItem):
    """Datagrams at a constant rate or in bursts, without retransmission."""

    kind = "udp"
    results: ClassVar = UDP_FLOWS

    udp: HostPairs
    """Pairs of source and sink, `h0->h3`, or `all`."""
    rate: Rate
    """Rate of each source's Ethernet frames while it sends."""
    packet: Annotated[int, whole(68, 9216)] = 1500
    """Bytes of an IP packet, at most `link_mtu`."""
    duration: PositiveTime
    """How long sources send."""
    bursts: BurstsSection | None = None
    """Bursts; without them, sources send all the time."""
    dscp: Annotated[int, whole(0, 63)] = 0
    """DSCP of the datagrams; its upper three bits are their class at the host."""
    ecn: Literal["not-ect", "ect0", "ect1"] = "not-ect"
    """ECN codepoint: whether switches may mark datagrams. Sources do not react to marks."""
    port: Annotated[int, whole(1024, 49151)] = 5001
    """Port of the first pair's sink; each further pair uses the next port."""

    def largest_packet(self, ip_version: int) -> tuple[str, int]:
        """Return `packet` and its value."""
        return "packet", self.packet

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check pairs, ports, and the number of datagrams."""
        check_pairs(self.udp, topology, f"{key}.udp")
        pairs = pairs_of(self.udp, topology)
        ports = range(self.port, self.port + len(pairs))
        if ports.stop > _PORTS_END or ROCE_UDP_PORT in ports:
            raise KeyProblem(
                f"{key}.port",
                f"{self.port}, with {counted(len(pairs), 'pair')}",
                valid=f"no port is {ROCE_UDP_PORT} or above {_PORTS_END - 1}",
            )
        datagrams = self.rate * self.duration // (8 * self.packet * PS_PER_S) * len(pairs)
        if datagrams > _MOST_DATAGRAMS:
            raise KeyProblem(
                f"{key}.duration",
                f"takes {datagrams:,} datagrams of all pairs",
                valid=f"up to {_MOST_DATAGRAMS:,}",
            )
        if self.bursts is not None:
            periods = int(self.duration / self.bursts.least_ps()) * len(pairs)
            if periods > _MOST_PERIODS:
                raise KeyProblem(
                    f"{key}.bursts",
                    f"make up to {periods:,} periods of all pairs",
                    valid=f"up to {_MOST_PERIODS:,}",
                )

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return the default plus the sources' duration."""
        return super().time_limit_s(fabric) + self.duration / PS_PER_S

    def task(self, fabric: Fabric) -> Task[list[UdpResult]]:
        """Return sources and sinks as a task."""
        bursts = self.bursts
        load = UdpLoad(
            rate_bps=self.rate,
            packet_bytes=self.packet,
            duration_ps=self.duration,
            dscp=self.dscp,
            ecn=_ECN[self.ecn],
            bursts=bursts.distribution if bursts else "",
            mean_on_ps=bursts.on if bursts else 0,
            mean_off_ps=bursts.off if bursts else 0,
            pareto_shape=bursts.shape if bursts else 1.5,
        )
        return udp_task(fabric, pairs_of(self.udp, fabric.topology), self.port, load)
