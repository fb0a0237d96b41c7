"""Packet conservation: what became of every packet of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from weft.engine import packet_ends, packet_origins
from weft.errors import CheckFailedError

if TYPE_CHECKING:
    from weft.engine.records import ConservationCounts, TrafficCounter
    from weft.traffic.host_stats import HostStats


UNSENT = "unsent"
"""Packets that hosts were to send and never did; the engine has not seen them."""
UNRESOLVED = "ip unresolved"
"""Why they did not: nobody answered for the next hop's MAC."""


@dataclass(frozen=True)
class Count:
    """Packets and their bytes on the wire; of what is missing they may be negative."""

    packets: int
    """How many."""
    bytes: int
    """On the wire."""


@dataclass(frozen=True)
class PacketConservation:
    """Fate of every packet: entered + resized = left + dropped + queued + in flight + in switches + missing."""

    entered: dict[str, Count]
    """By origin."""
    left: dict[str, Count]
    """By end."""
    dropped: dict[str, Count]
    """By cause."""
    resized_bytes: int
    """Bytes that switches added to packets, less those that they removed."""
    queued: Count
    """In queues."""
    in_flight: Count
    """On links."""
    in_switches: Count
    """In pipelines that take time."""
    missing: Count
    """Packets that entered and are nowhere: 0, or the run has failed."""

    @classmethod
    def of(cls, counts: ConservationCounts) -> PacketConservation:
        """Return what an engine has counted."""
        return cls(
            entered=_counts(counts["entered"]),
            left=_counts(counts["left"]),
            dropped=_counts(counts["dropped"]),
            resized_bytes=counts["resized_bytes"],
            queued=Count(**counts["queued"]),
            in_flight=Count(**counts["in_flight"]),
            in_switches=Count(**counts["in_switches"]),
            missing=Count(**counts["missing"]),
        )

    def with_unsent(self, unsent: Count) -> PacketConservation:
        """Return it with packets that hosts gave up before they were in the fabric, as entered and dropped."""
        if not unsent.packets:
            return self
        return replace(
            self, entered=self.entered | {UNSENT: unsent}, dropped=self.dropped | {UNRESOLVED: unsent}
        )

    @property
    def packets_under_way(self) -> int:
        """Return how many packets wait in queues, are on links, or are in switches that take their time."""
        return self.queued.packets + self.in_flight.packets + self.in_switches.packets


def _counts(counters: Mapping[str, TrafficCounter]) -> dict[str, Count]:
    return {name: Count(**counter) for name, counter in counters.items()}


def checked_conservation(counts: ConservationCounts) -> ConservationCounts:
    """Return what an engine has counted, if no packet is missing.

    Raises:
        CheckFailedError: packets or bytes are nowhere, or have come from nowhere; says how many.
    """
    missing = counts["missing"]
    if missing["packets"] or missing["bytes"]:
        raise CheckFailedError(
            f"packets are not conserved: {missing['packets']} packets and {missing['bytes']} B of what entered the "
            "fabric have neither left it, nor been dropped, nor are under way (below 0: have come from nowhere); "
            f"dropped: {', '.join(counts['dropped']) or 'none'}"
        )
    return counts


def unsent_by(endpoint_stats: Iterable[HostStats]) -> Count:
    """Return what hosts have given up before it was in the fabric."""
    unsent = [endpoint["ip"]["unresolved"] for endpoint in endpoint_stats if endpoint["ip"] is not None]
    return Count(sum(each["packets"] for each in unsent), sum(each["bytes"] for each in unsent))


def packets_under_way(counts: ConservationCounts) -> int:
    """Return how many packets wait in queues, are on links, or are in switches that take their time."""
    return sum(counts[where]["packets"] for where in ("queued", "in_flight", "in_switches"))


def print_packet_conservation(
    console: Console, conservation: PacketConservation | None, absorbed: Mapping[str, int]
) -> None:
    """Print an equation of packets, if they were counted: how many there were, and what became of them.

    `absorbed` (`weft.results.counters.absorbed_totals`) stands apart from drops.
    """
    if conservation is None:
        return
    origins, ends = packet_origins() | {UNSENT: "that hosts could not send"}, packet_ends()
    of_services = sum(count for name, count in absorbed.items() if name.endswith("requests"))
    taken = sum(absorbed.values())
    came = [(origins[name], count.packets) for name, count in conservation.entered.items()]
    went = [
        *((ends[name], count.packets) for name, count in conservation.left.items()),
        ("absorbed by aggregation", taken - of_services),
        ("absorbed by services", of_services),
        ("dropped", sum(each.packets for each in conservation.dropped.values()) - taken),
        ("under way", conservation.packets_under_way),
    ]
    console.print(f"packet conservation: {_terms(came)} = {_terms(went)}; none is missing")


def _terms(counts: Sequence[tuple[str, int]]) -> str:
    """Return a sum; terms of 0 are left out, but for the first."""
    return " + ".join(
        f"{count} {name}" for number, (name, count) in enumerate(counts) if count or number == 0
    )
