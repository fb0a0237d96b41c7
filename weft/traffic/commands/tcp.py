"""Commands for flows of a host's own TCP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from weft.traffic.answers import Prepared, TcpRecords
from weft.traffic.commands.base import Command
from weft.traffic.commands.connections import UdpPort
from weft.traffic.messages import Between


@dataclass(frozen=True)
class TcpEnd:
    """One end of a TCP flow. `peer` is the other end's address; `port` is the receiver's.

    `size_bytes` 0: as much as goes in `duration_ps`. Times count from the run's start.
    """

    flow: int
    port: UdpPort
    sends: bool
    peer: str = ""
    ip_version: Literal[4, 6] = 4
    start_ps: int = 0
    size_bytes: int = 0
    duration_ps: int = 0
    dscp: Annotated[int, Between(0, 63)] = 0
    congestion_control: str = "cubic"
    ecn: bool = False
    sack: bool = True
    receive_buffer_bytes: Annotated[int, Between(1)] = 4 << 20
    initial_window_segments: Annotated[int, Between(1)] = 10
    least_timeout_ps: Annotated[int, Between(1)] = 200_000_000_000
    delayed_acknowledgement_ps: Annotated[int, Between(1)] = 40_000_000_000
    acknowledge_every_segments: Annotated[int, Between(1)] = 2
    send_jitter_ps: Annotated[int, Between(0)] = 0
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PrepareTcpFlows(Command[Prepared], name="tcp_flows"):
    """Make a host's ends of TCP flows ready; windows are sampled no more often than `sample_interval_ps`, 0: never."""

    run: int
    ends: tuple[TcpEnd, ...]
    sample_interval_ps: Annotated[int, Between(0)] = 0


@dataclass(frozen=True)
class AskTcpRecords(Command[TcpRecords], name="tcp_records"):
    """Ask what became of a host's ends of the flows of a run of `tcp_flows`."""

    run: int
