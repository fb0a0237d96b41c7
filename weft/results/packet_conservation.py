"""Packet conservation: what became of every packet of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from weft.engine import packet_ends, packet_origins
from weft.errors import CheckFailedError
from weft.quantities.plain_data import PlainData
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import ReportTable
from weft.topologies import FabricSpec

if TYPE_CHECKING:
    from weft.engine.records import ConservationCounts, TrafficCounter
    from weft.results.model import Results
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
        return replace(self, entered=self.entered | {UNSENT: unsent}, dropped=self.dropped | {UNRESOLVED: unsent})

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


@dataclass(frozen=True)
class AccountRow(PlainData):
    """A row of the account of every packet: one part of a group, or the whole group (`in all`)."""

    group: str
    """Fate of the packets, in words."""
    what: str
    """Origin, end, cause or place; empty for a group of one."""
    packets: int | None
    """How many; None: the group counts bytes only."""
    bytes: int | None
    """On the wire; None: they are not counted."""

    @property
    def name(self) -> str:
        """Return `what` in words; causes of drops keep their names."""
        return self.what if self.group == _DROPPED else self.what.replace("_", " ")

    @property
    def is_of_interest(self) -> bool:
        """Return whether it is a sum, or not 0."""
        return self.what in (_IN_ALL, "") or bool(self.packets or self.bytes)


_IN_ALL, _DROPPED, _ABSORBED, _ENDED, _UNDER_WAY = (
    "in all", "dropped", "absorbed", "absorbed and dropped", "under way",
)  # fmt: skip


def account_rows(results: Results) -> list[AccountRow]:
    """Return the account of every packet, zeros included; none if packets were not counted."""
    account = results.packet_conservation
    if account is None:
        return []
    held = {"in queues": account.queued, "on links": account.in_flight, "in switches": account.in_switches}
    ended = _sum(account.dropped.values())
    causes = ((cause, count, account.dropped.get(cause)) for cause, count in results.drops.items())
    return [
        *_counted("entered", account.entered),
        *_counted("left", account.left),
        *(AccountRow(_ABSORBED, name, count, None) for name, count in results.absorbed.items()),
        *(AccountRow(_DROPPED, cause, count, found.bytes if found else None) for cause, count, found in causes),
        AccountRow(_ENDED, _IN_ALL, ended.packets, ended.bytes),
        *_counted(_UNDER_WAY, held),
        AccountRow("resized", "by switches", None, account.resized_bytes),
        AccountRow("missing", "", account.missing.packets, account.missing.bytes),
    ]


def _counted(group: str, counts: dict[str, Count]) -> Iterator[AccountRow]:
    for name, each in (counts | {_IN_ALL: _sum(counts.values())}).items():
        yield AccountRow(group, name, each.packets, each.bytes)


def _sum(counts: Collection[Count]) -> Count:
    return Count(sum(each.packets for each in counts), sum(each.bytes for each in counts))


def _show(console: Console, rows: Sequence[AccountRow]) -> None:
    """Print an equation of packets: how many there were, and what became of them.

    Packets that aggregation and services absorbed (`weft.results.counters.absorbed_totals`) are no drops.
    """
    packets: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        packets[row.group][row.what] = row.packets or 0
    origins, ends = packet_origins() | {UNSENT: "that hosts could not send"}, packet_ends()
    taken = sum(packets[_ABSORBED].values())
    of_services = sum(count for name, count in packets[_ABSORBED].items() if name.endswith("requests"))
    came = [(origins[name], count) for name, count in packets["entered"].items() if name != _IN_ALL]
    went = [
        *((ends[name], count) for name, count in packets["left"].items() if name != _IN_ALL),
        ("absorbed by aggregation", taken - of_services),
        ("absorbed by services", of_services),
        ("dropped", packets[_ENDED][_IN_ALL] - taken),
        ("under way", packets[_UNDER_WAY][_IN_ALL]),
    ]
    console.print(f"packet conservation: {_terms(came)} = {_terms(went)}; none is missing")


def _terms(counts: Sequence[tuple[str, int]]) -> str:
    """Return a sum; terms of 0 are left out, but for the first."""
    return " + ".join(f"{count} {name}" for number, (name, count) in enumerate(counts) if count or number == 0)


_TABLE = ResultTable[AccountRow](
    "Packet conservation",
    (
        Column("", "group"),
        Column("what", "name"),
        Column("packets", "packets"),
        Column("bytes", "bytes"),
    ),
    note="entered + resized = left + absorbed and dropped + under way + missing; what switches add up is absorbed",
)


def _report(rows: Sequence[AccountRow], _: FabricSpec) -> Iterator[ReportTable]:
    yield _TABLE.part([row for row in rows if row.is_of_interest])


PACKET_CONSERVATION = ResultKind(
    key="packet_conservation",
    model=AccountRow,
    rows=account_rows,
    tables=(_TABLE,),
    show=_show,
    report=_report,
)
