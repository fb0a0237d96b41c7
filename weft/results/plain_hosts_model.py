"""Results of programs on hosts' IP stacks: a ping, a route, a UDP flow, a replay, a script.

Losses and silent hops are findings; where nothing came at all, something is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from weft.results.kinds import ItemResult
from weft.results.latencies import Latencies


@dataclass(frozen=True)
class PingResult(ItemResult):
    """ICMP echo requests from one host to another."""

    derived: ClassVar[Mapping[str, str]] = {"loss": "loss"}

    source: str
    """The host that asks."""
    destination: str
    """The host that answers."""
    sent: int
    """Requests that left the host."""
    answered: int
    """Requests with an answer within `timeout`."""
    unreachable: int
    """Requests that somebody has reported as not deliverable."""
    duplicates: int
    """Answers to what had been answered."""
    round_trip_ps: Latencies | None
    """Round trips of answered requests; none without an answer."""
    not_sent: int = 0
    """Further requests, which did not leave it: no route, a full queue, or nobody answered for the next hop's MAC."""

    @property
    def ok(self) -> bool:
        """Return whether any request was answered, which is what `ping` exits by."""
        return self.answered > 0

    @property
    def loss(self) -> float:
        """Return the share of requests without an answer, those that were not sent among them."""
        return 1 - self.answered / (self.sent + self.not_sent)


@dataclass(frozen=True)
class Hop:
    """Who has answered to packets with a hop limit."""

    hop_limit: int
    """With which they were sent."""
    responders: tuple[str, ...]
    """Each address once; none if nobody has answered."""
    round_trip_ps: tuple[int, ...]
    """Round trips of answered probes."""


@dataclass(frozen=True)
class RouteResult(ItemResult):
    """Hops from one host to another."""

    source: str
    """The host that asks."""
    destination: str
    """The host at the end."""
    reached: bool
    """Whether the destination has answered."""
    hops: tuple[Hop, ...]
    """Up to the first at which the destination has answered."""


@dataclass(frozen=True)
class UdpResult(ItemResult):
    """Datagrams from a source to a sink."""

    derived: ClassVar[Mapping[str, str]] = {"lost": "lost", "loss": "loss"}

    source: str
    """The host that sends."""
    destination: str
    """The host that receives."""
    sent: int
    """Datagrams that left the host."""
    not_sent: int
    """Further datagrams, which did not leave it: no route, a full queue, or nobody answered for the next hop's MAC."""
    received: int
    """Datagrams, each counted once."""
    duplicates: int
    """Further copies that arrived."""
    reordered: int
    """Datagrams that came after one that was sent later."""
    marked: int
    """Datagrams that a switch has marked (CE)."""
    goodput_bps: float
    """Received bits of IP packets over the time from the start to the last of them."""
    delay_ps: Latencies | None
    """One-way, queueing included; none if nothing came."""
    jitter_ps: Latencies | None
    """Differences of the delays of successive arrivals (RFC 3393), without sign; none with fewer than two."""

    @property
    def ok(self) -> bool:
        """Return whether any datagram came."""
        return self.received > 0 or not self.sent + self.not_sent

    @property
    def lost(self) -> int:
        """Return how many datagrams did not come, those that were not sent among them."""
        return self.sent + self.not_sent - self.received

    @property
    def loss(self) -> float:
        """Return the share that did not come."""
        return self.lost / (self.sent + self.not_sent) if self.sent + self.not_sent else 0.0


@dataclass(frozen=True)
class ReplayResult(ItemResult):
    """Frames of a capture that a host has sent."""

    host: str
    """Which."""
    file: str
    """The capture's name."""
    frames: int
    """That were sent."""
    sent_bytes: int
    """Bytes of these frames."""
    not_sent: int
    """Frames that found the host's own queue full."""
    time_ps: int
    """From the first to the last."""


@dataclass(frozen=True)
class PrintedLine:
    """A line that a script has printed."""

    time_ps: int
    """Since the run's start."""
    text: str
    """The line."""


@dataclass(frozen=True)
class ScriptResult(ItemResult):
    """Actions and output of a scripted host."""

    host: str
    """Which."""
    script: str
    """Its class."""
    sent: int
    """Frames."""
    not_sent: int
    """Frames that found the host's own queue full."""
    seen: int
    """Frames that came to it."""
    reports: dict[str, Any]
    """Values that it reported, by key."""
    printed: tuple[PrintedLine, ...]
    """In order."""
