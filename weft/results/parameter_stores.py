"""Latencies of pulls from a parameter store, and how many of them a switch answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.columns import Column, ResultTable, Value, grouped
from weft.results.figure_tables import Layout
from weft.results.kinds import ItemResult, ResultKind
from weft.results.latencies import Latencies, latency_figure, problems_of_service
from weft.results.report_parts import ReportPart
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class ParameterStoreResult(ItemResult):
    """Requests of clients to a parameter store."""

    derived: ClassVar[Mapping[str, str]] = {"pulls_per_s": "pulls_per_s", "hit_rate": "hit_rate"}

    clients: int
    """How many."""
    blocks: int
    """Blocks of the store."""
    cached_blocks: int
    """That the store's switch may answer for."""
    skew: float
    """Exponent of Zipf's law by which blocks are drawn; 0: all alike."""
    outstanding: int
    """Requests that a client keeps under way."""
    pulls: int
    """Pulls of all clients."""
    pushes: int
    """Pushes of all clients."""
    hits: int
    """Pulls that the switch has answered."""
    store_pulls: int
    """Pulls that the store has answered, those that were asked again included."""
    store_pushes: int
    """Pushes that the store has carried out."""
    store_link_load: float
    """Share of what the store's link to the switch could have carried, of its answers, from Ethernet to iCRC."""
    time_ps: int
    """From the first request to the last answer."""
    latency_ps: Latencies
    """Latencies of pulls."""
    hit_ps: int | None
    """Mean latency of pulls that the switch answered; none if there were none."""
    miss_ps: int | None
    """Mean latency of pulls that the store answered; none if there were none."""
    stale: int
    """Pulls that found an older version than one that somebody had been notified of when they began: 0 unless something
    is wrong."""
    wrong: int
    """Answers with another block than the version's writer wrote, and pushes that were not carried out once: 0 unless
    something is wrong."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""

    @property
    def ok(self) -> bool:
        """Whether no answer was stale or wrong."""
        return self.stale == self.wrong == 0

    @property
    def pulls_per_s(self) -> float:
        """Return pulls per second of emulated time."""
        return self.pulls * PS_PER_S / self.time_ps

    @property
    def hit_rate(self) -> float:
        """Return the share of pulls that the switch has answered."""
        return self.hits / self.pulls if self.pulls else 0.0


def _in_us(title: str, value: Value[ParameterStoreResult]) -> Column[ParameterStoreResult]:
    return Column(title, value, scale=PS_PER_US, digits=2)


_PULLS = Column[ParameterStoreResult](
    "million/s",
    "pulls_per_s",
    scale=1e6,
    digits=2,
    sweep={"title": "pulls", "unit": "million/s", "digits": 3, "more_is_better": True},
)
_TABLE = ResultTable[ParameterStoreResult](
    "Parameter stores",
    (
        Column("cached", "cached_blocks"),
        Column("blocks", "blocks"),
        Column("skew", "skew"),
        Column("pulls", "pulls"),
        Column("pushes", "pushes"),
        Column("hits", lambda each: 100 * each.hit_rate, unit="%", digits=1),
        _PULLS,
        Column("link", lambda each: 100 * each.store_link_load, unit="%", digits=1),
        _in_us("mean", "latency_ps.mean"),
        _in_us("99 %", lambda each: each.latency_ps.percentiles[2]),
        _in_us("hit", "hit_ps"),
        _in_us("miss", "miss_ps"),
        Column("stale", "stale"),
        Column("wrong", "wrong"),
        Column("resent", "retransmissions"),
    ),
    "[bold]parameter stores: pulls, µs[/bold] (time is emulated)",
    "latencies in µs",
    Layout(is_narrow=True),
    grouped,
)  # fmt: skip


def report_parameter_stores(results: Sequence[ParameterStoreResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Bars of latencies, and a table with a row for each result."""
    rows = [(f"{each.cached_blocks:,} cached, skew {each.skew:g}", each.latency_ps) for each in results]
    yield latency_figure("Latencies of pulls", rows)
    yield _TABLE.part(results)


PARAMETER_STORES = ResultKind(
    key="parameter_stores",
    meaning="One for each item of requests to a parameter store.",
    model=ParameterStoreResult,
    is_checked=lambda _: True,
    report=report_parameter_stores,
    tables=(_TABLE,),
    order=9,
    problems=lambda each: problems_of_service(each.latency_ps, each.time_ps),
    name="cached_blocks",
    labels=("cached_blocks", "skew"),
    columns=(
        _PULLS,
        Column("hit rate", "hit_rate", digits=3, sweep={"more_is_better": True}),
    ),
)
