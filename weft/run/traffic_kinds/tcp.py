"""TCP: flows of the hosts' emulated TCP stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from weft.clocks.lab import Progress
from weft.engine._core import TcpCongestionControl, tcp_congestion_control_names
from weft.errors import translated
from weft.hints import did_you_mean
from weft.quantities.definitions import FlowSize, PositiveTime, Size, Time, whole
from weft.quantities.example import Example
from weft.quantities.readable import counted
from weft.quantities.traffic_classes import DATA_CLASS, DSCP_OF_CLASS
from weft.quantities.units import PS_PER_MS, shown
from weft.results.kinds import ResultKind
from weft.results.tcp import TCP, TcpResult
from weft.run.tcp import TcpFlow, tcp_task
from weft.run.traffic_kinds.base import FlowsBesideOthers, check_no_spares
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import NOTHING
from weft.scenario.values import Name, Section, Text
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.commands.tcp import TcpEnd
from weft.traffic.control import MOST_TCP_FLOWS

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task

TcpControlName = Annotated[str, Name("TCP congestion control", tcp_congestion_control_names)]


class TcpFlowSection(Section):
    """Connections from one host to another."""

    flow: Annotated[str, Text("a pair of hosts, SOURCE->DESTINATION", r"\A[^\s>]+->[^\s>]+\Z", "h0->h3")]
    """Source and destination host, as `h0->h3`."""
    size: FlowSize | None = None
    """Bytes that each connection sends; this or `duration`."""
    duration: PositiveTime | None = None
    """How long each connection sends at full speed."""
    start: Time = 0
    """Time from the item's start until the connections open."""
    connections: Annotated[int, whole(1, MOST_TCP_FLOWS)] = 1
    """Number of parallel connections."""
    congestion_control: TcpControlName | None = None
    """Congestion control; by default the item's."""
    parameters: Annotated[dict[str, float], Example("{beta: 0.7}", (".congestion_control=cubic",))] = Field(default={})
    """Parameters of the congestion control; by default the item's, if it uses the item's control."""


def _check_control(name: str | None, key: str) -> None:
    known = tcp_congestion_control_names()
    if name is not None and name not in known:
        raise KeyProblem(key, f"no TCP congestion control {shown(name)}; {did_you_mean(name, known)}")


def _check_parameters(control: str, parameters: Mapping[str, float], key: str) -> None:
    with translated(ValueError, KeyProblem, key):
        TcpCongestionControl(control, segment_bytes=1, parameters=parameters)


class TcpTraffic(FlowsBesideOthers):
    """TCP flows of the hosts' emulated stack, under the virtual clock."""

    kind = "tcp"
    results: ClassVar[ResultKind[Any] | None] = TCP
    operations = NOTHING
    fills_link_mtu = True
    lacking = (
        "this TCP is that of hosts of the virtual clock, under the real one hosts have their kernel's: use "
        "--clock virtual, or run programs of your own in a lab"
    )

    tcp: list[TcpFlowSection] = Field(min_length=1, max_length=MOST_TCP_FLOWS)
    """The flows."""
    congestion_control: TcpControlName = "cubic"
    """Congestion control of flows that name no other."""
    parameters: Annotated[dict[str, float], Example("{beta: 0.7}", (".congestion_control=cubic",))] = Field(default={})
    """Parameters of the congestion control, such as `{beta: 0.8, hystart: 0}` for cubic or `{g: 0.25}` for dctcp."""
    ecn: bool = False
    """Explicit congestion notification (RFC 3168), if switches mark; dctcp always uses it."""
    sack: bool = True
    """Selective acknowledgements (RFC 2018, RFC 6675); without them recovery follows RFC 6582."""
    initial_window: Annotated[int, whole(1, 1000)] = 10
    """Initial congestion window in segments (RFC 6928)."""
    receive_buffer: Size = 4 * 2**20
    """Receive buffer of each connection, which bounds its bytes in flight."""
    least_timeout: PositiveTime = 200 * PS_PER_MS
    """Least retransmission timeout: 200ms as in Linux; RFC 6298 has 1s."""
    delayed_acknowledgement: PositiveTime = 40 * PS_PER_MS
    """Time after which a single segment is acknowledged (RFC 5681, section 4.2)."""
    acknowledge_every: Annotated[int, whole(1, 1000)] = 2
    """Segments acknowledged together (RFC 5681, section 4.2); 1: each immediately."""
    send_jitter: Time = 5_000_000
    """Largest random delay, drawn from the seed, between an acknowledgement and the segments that it allows, as
    interrupts and schedulers of hosts cause. With 0, flows may run in lockstep, and their phase then decides which of
    them lose packets (Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992)."""
    dscp: Annotated[int, whole(0, 63)] = DSCP_OF_CLASS[DATA_CLASS]
    """DSCP of all packets; by default the one of RoCEv2's data class, in which switches mark."""
    sample: Time = 0
    """Least time between records of congestion windows; 0: no records."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that hosts exist, that each flow has a size or a duration, and the number of connections."""
        super().check(fabric, key)
        check_no_spares(fabric, key)
        hosts = fabric.host_names
        for number, each in enumerate(self.tcp):
            own = f"{key}.tcp[{number}]"
            ends = each.flow.split("->")
            for name in ends:
                if name not in hosts:
                    raise KeyProblem(f"{own}.flow", f"no host {shown(name)}; {did_you_mean(name, hosts)}")
            if ends[0] == ends[1]:
                raise KeyProblem(f"{own}.flow", f"from {ends[0]} to itself", valid="two hosts")
            if (each.size is None) == (each.duration is None):
                raise KeyProblem(own, "needs exactly one of size, duration")
            _check_control(each.congestion_control, f"{own}.congestion_control")
        _check_control(self.congestion_control, f"{key}.congestion_control")
        for number, each in enumerate(self.tcp):
            _check_parameters(self._control_of(each), each.parameters, f"{key}.tcp[{number}].parameters")
        _check_parameters(self.congestion_control, self.parameters, f"{key}.parameters")
        count = sum(each.connections for each in self.tcp)
        if count > MOST_TCP_FLOWS:
            raise KeyProblem(f"{key}.tcp", f"{count} connections", valid=f"up to {MOST_TCP_FLOWS}")

    def _control_of(self, flow: TcpFlowSection) -> str:
        return flow.congestion_control or self.congestion_control

    def _parameters_of(self, flow: TcpFlowSection) -> Mapping[str, float]:
        if flow.parameters or self._control_of(flow) != self.congestion_control:
            return flow.parameters
        return self.parameters

    def flows(self, topology: FabricSpec) -> Iterator[TcpFlow]:
        """Yield each connection with its hosts' indices in the fabric."""
        for each in self.tcp:
            source, destination = (topology.host(name).index for name in each.flow.split("->"))
            end = TcpEnd(
                flow=0,
                port=0,
                sends=True,
                start_ps=each.start,
                size_bytes=each.size or 0,
                duration_ps=each.duration or 0,
                dscp=self.dscp,
                congestion_control=self._control_of(each),
                parameters=self._parameters_of(each),
                ecn=self.ecn,
                sack=self.sack,
                receive_buffer_bytes=self.receive_buffer,
                initial_window_segments=self.initial_window,
                least_timeout_ps=self.least_timeout,
                delayed_acknowledgement_ps=self.delayed_acknowledgement,
                acknowledge_every_segments=self.acknowledge_every,
                send_jitter_ps=self.send_jitter,
            )
            for _ in range(each.connections):
                yield TcpFlow(source, destination, end)

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run the flows."""
        task = self.task(fabric)
        progress(counted(sum(each.connections for each in self.tcp), "TCP flow"))
        fabric.run_together([task])

    def task(self, fabric: Fabric) -> Task[TcpResult]:
        """Return the flows as a task."""
        return tcp_task(fabric, list(self.flows(fabric.topology)), self.sample)
