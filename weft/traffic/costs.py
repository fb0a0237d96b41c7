"""Costs of algorithms: time over links of known latency and rate, as each algorithm's own file states.

The model has alpha and beta: messages that wait for each other take a latency each, and the busiest link takes a
time a byte (Hockney, "The communication challenge for MPP", Parallel Computing 20(3), 1994). It leaves out
such effects as packets of different messages that meet at a switch; those are measured (`weft.run.tuner`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.traffic.schedules.plan import piece_count
from weft.traffic.schedules.spec import CollectiveSpec


@dataclass(frozen=True)
class Wire:
    """How long a message takes: `latency_ps` without data, then `ps_per_byte` at the sender.

    Every further link of the way holds up the first packet, of `packet_bytes`, for `stored_ps_per_byte` of it.
    """

    latency_ps: float
    ps_per_byte: float
    stored_ps_per_byte: float = 0.0
    packet_bytes: int = 1

    def message_ps(self, size_bytes: float) -> float:
        """Return the time from the first bit sent to the last one received, on an idle network."""
        stored_ps = self.stored_ps_per_byte * min(size_bytes, self.packet_bytes)
        return self.latency_ps + stored_ps + self.ps_per_byte * size_bytes


@dataclass(frozen=True)
class Links:
    """A fabric as costs see it.

    Attributes:
        between: from rank to rank of different hosts, over one NIC.
        inside: between ranks of one host, over scale-up links.
        aggregation: from a rank to the root of a tree and back, by aggregation packets.
    """

    between: Wire
    inside: Wire
    aggregation: Wire


@dataclass(frozen=True)
class Cost:
    """An algorithm's time on an idle network.

    Attributes:
        steps: messages that wait for each other.
        latency_ps: how long these take.
        transfer_ps: how much longer the busiest link needs for all of its bytes.
    """

    steps: int
    latency_ps: float
    transfer_ps: float

    @property
    def total_ps(self) -> float:
        """Return the whole time."""
        return self.latency_ps + self.transfer_ps

    def __add__(self, other: Cost) -> Cost:
        """Return the cost of one after the other."""
        return Cost(
            self.steps + other.steps,
            self.latency_ps + other.latency_ps,
            self.transfer_ps + other.transfer_ps,
        )


CostOf = Callable[[CollectiveSpec, Links], Cost]
"""Returns what an algorithm costs for a spec."""


def nic_bytes(spec: CollectiveSpec) -> float:
    """Return how many of a rank's bytes the NIC of the largest share carries."""
    return max(map(len, spec.stripes())) * spec.element_bytes


def piece_bytes(size_bytes: float, spec: CollectiveSpec) -> float:
    """Return the size of the pieces into which so many bytes are cut."""
    return size_bytes / piece_count(int(size_bytes), spec.piece_bytes)


def pipelined(steps: int, piece_ps: float, busy_ps: float) -> Cost:
    """Return the cost of steps of which each passes on a piece at once, while a link is busy for `busy_ps` in all."""
    latency_ps = steps * piece_ps
    return Cost(steps, latency_ps, max(0.0, busy_ps - latency_ps))


def plain_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """Return one message and one byte for each of the data: of algorithms that state no cost, for the fit to scale."""
    return Cost(1, links.between.message_ps(0), nic_bytes(spec) * links.between.ps_per_byte)
