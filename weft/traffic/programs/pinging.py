"""Ping: ICMP echo requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engine import _core
from weft.traffic.programs.base import OpenProgram, Program

if TYPE_CHECKING:
    from weft.traffic.host import Host


@dataclass(frozen=True)
class EchoRecord:
    """Outcomes of requests, in the order in which they were sent; `round_trip_ps` is 0 without an answer.

    `outcome` is lost, answered, time_exceeded, unreachable or not_sent, `responder` the address that answered.
    """

    sent_ps: tuple[int, ...]
    round_trip_ps: tuple[int, ...]
    outcome: tuple[str, ...]
    responder: tuple[str, ...]
    duplicates: int


@dataclass(frozen=True)
class Ping(Program):
    """Requests to an address, `interval_ps` apart; one is lost that is not answered within `timeout_ps`."""

    destination: str
    count: int
    interval_ps: int
    timeout_ps: int
    data_bytes: int = 56
    dscp: int = 0
    hop_limit: int = 64

    def open(self, host: Host) -> OpenProgram:
        """See Program."""
        return _OpenPing(self, host)


class _OpenPing(OpenProgram):
    def __init__(self, ping: Ping, host: Host) -> None:
        self.application: _core.EchoClient = _core.EchoClient(
            host.ip,
            host.executor,
            destination=ping.destination,
            count=ping.count,
            interval_ps=ping.interval_ps,
            timeout_ps=ping.timeout_ps,
            data_bytes=ping.data_bytes,
            dscp=ping.dscp,
            hop_limit=ping.hop_limit,
        )

    def record(self) -> EchoRecord:
        """See OpenProgram."""
        columns = self.application.records()
        return EchoRecord(
            tuple(columns["sent_ps"].tolist()),
            tuple(columns["round_trip_ps"].tolist()),
            tuple(columns["outcome"]),
            tuple(columns["responder"]),
            self.application.duplicates(),
        )
