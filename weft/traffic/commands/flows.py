"""Commands for flows of RoCEv2: a pattern's and a workload's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from weft.traffic.answers import FlowRecords, Prepared
from weft.traffic.commands.base import Command
from weft.traffic.commands.connections import PlaneAddress
from weft.traffic.messages import AS_BYTES, Payload
from weft.traffic.patterns import Flow


@dataclass(frozen=True)
class PrepareTraffic(Command[Prepared], name="traffic"):
    """Make flows ready, by their numbers in the run: those that the host sends or receives."""

    run: int
    flows: Mapping[int, Flow]
    payload: Payload = AS_BYTES
    rank: int | None = None


class WorkloadFlow(NamedTuple):
    """A flow of a workload, as one of its ends has it: the queue pairs are its own and the peer's."""

    flow: int
    start_ps: int
    plane: int
    size_bytes: int
    peer: int
    peer_ip: str
    queue_pair: int
    remote_queue_pair: int


@dataclass(frozen=True)
class PeerPlanes:
    """Where a peer is on planes besides the first."""

    peer: int
    planes: tuple[PlaneAddress, ...]


@dataclass(frozen=True)
class PrepareFlows(Command[Prepared], name="flows"):
    """Make the flows of a workload ready, each over a queue pair of its own."""

    run: int
    sent: tuple[WorkloadFlow, ...]
    received: tuple[WorkloadFlow, ...]
    telemetry: bool = False
    payload: Payload = AS_BYTES
    more_planes: tuple[PeerPlanes, ...] = ()
    """Where each flow's queue pair uses all planes: peers' addresses besides `peer_ip`."""


@dataclass(frozen=True)
class AskFlowRecords(Command[FlowRecords], name="flow_records"):
    """Ask when the flows of a run of `traffic` or `flows` began and ended."""

    run: int
