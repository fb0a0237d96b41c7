"""UDP: a source at a constant rate or in bursts, and its sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.engine import _core
from weft.traffic.programs.base import OpenProgram, Program

if TYPE_CHECKING:
    from weft.engine._core import UdpSinkStats
    from weft.traffic.host import Host


@dataclass(frozen=True)
class UdpSent:
    """Datagrams of a source; `not_sent_packets` of `packets` found its host's queue full, no way, or no neighbour."""

    packets: int
    not_sent_packets: int
    was_confirmed: bool


@dataclass(frozen=True)
class UdpReceived:
    """A sink's counts, each datagram's one-way delay in the order of arrival, and when the last one came."""

    counts: UdpSinkStats
    delays_ps: NDArray[np.int64]
    last_ps: int


@dataclass(frozen=True)
class UdpLoad:
    """A source's traffic, in the terms of the engine's `UdpSource`; `bursts` is empty for a constant rate."""

    rate_bps: int
    packet_bytes: int
    duration_ps: int
    dscp: int
    ecn: int
    bursts: str
    mean_on_ps: int
    mean_off_ps: int
    pareto_shape: float


@dataclass(frozen=True)
class UdpSender(Program):
    """A source, to a port of a host; `stream` names what its bursts are drawn from."""

    destination: str
    port: int
    stream: str
    load: UdpLoad

    def open(self, host: Host) -> OpenProgram:
        """See Program."""
        return _OpenSender(host, self)


@dataclass(frozen=True)
class UdpReceiver(Program):
    """A sink at `port`, for the source with this address."""

    source: str
    port: int

    def open(self, host: Host) -> OpenProgram:
        """See Program."""
        return _OpenReceiver(host, self.source, self.port)


class _OpenSender(OpenProgram):
    def __init__(self, host: Host, sender: UdpSender) -> None:
        self.application: _core.UdpSource = _core.UdpSource(
            host.ip,
            host.executor,
            destination=sender.destination,
            port=sender.port,
            stream=sender.stream,
            **vars(sender.load),
        )

    def record(self) -> UdpSent:
        """See OpenProgram."""
        source = self.application
        return UdpSent(source.packets(), source.not_sent_packets(), source.was_confirmed())


class _OpenReceiver(OpenProgram):
    def __init__(self, host: Host, source: str, port: int) -> None:
        self.application: _core.UdpSink = _core.UdpSink(host.ip, host.executor, source=source, port=port)

    def record(self) -> UdpReceived:
        """See OpenProgram."""
        sink = self.application
        return UdpReceived(sink.stats(), sink.delays_ps(), sink.last_ps())
