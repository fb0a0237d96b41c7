"""What pulls from a parameter store took, and how many of them a switch answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from rich.console import Console

from weft.results.figure_tables import print_figures
from weft.results.kinds import MeasuredColumn, ResultKind
from weft.results.latencies import Latencies, problems_of_service
from weft.results.report_parts import Cell, ReportPart, ReportTable
from weft.topologies import FabricSpec

_PS_PER_S = 10**12
_PS_PER_US = 1e6


@dataclass(frozen=True)
class ParameterStoreResult:
    """Requests of clients to a parameter store."""

    derived: ClassVar[Mapping[str, str]] = {"pulls_per_s": "pulls_per_s", "hit_rate": "hit_rate"}

    clients: int
    """How many."""
    blocks: int
    """Of the store."""
    cached_blocks: int
    """That the store's switch may answer for."""
    skew: float
    """Exponent of Zipf's law by which blocks are drawn; 0: all alike."""
    outstanding: int
    """Requests that a client keeps under way."""
    pulls: int
    """Of all clients."""
    pushes: int
    """Of all clients."""
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
    """Of pulls."""
    hit_ps: int | None
    """Of pulls that the switch has answered, on average; none if there were none."""
    miss_ps: int | None
    """Of those that the store has answered, on average; none if there were none."""
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
        return self.pulls * _PS_PER_S / self.time_ps

    @property
    def hit_rate(self) -> float:
        """Return the share of pulls that the switch has answered."""
        return self.hits / self.pulls if self.pulls else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with derived figures."""
        plain = {**vars(self), "latency_ps": asdict(self.latency_ps)}
        return plain | {key: getattr(self, name) for key, name in self.derived.items()}


_COLUMNS = (
    "cached",
    "blocks",
    "skew",
    "pulls",
    "pushes",
    "hits (%)",
    "million/s",
    "link (%)",
    "mean",
    "99 %",
    "hit",
    "miss",
    "stale",
    "wrong",
    "resent",
)


def _row(each: ParameterStoreResult) -> list[Cell]:
    def in_us(time_ps: int | None) -> Cell:
        return "" if time_ps is None else round(time_ps / _PS_PER_US, 2)

    return [
        each.cached_blocks,
        each.blocks,
        each.skew,
        each.pulls,
        each.pushes,
        round(100 * each.hit_rate, 1),
        round(each.pulls_per_s / 1e6, 2),
        round(100 * each.store_link_load, 1),
        in_us(each.latency_ps.mean),
        in_us(each.latency_ps.percentiles[2]),
        in_us(each.hit_ps),
        in_us(each.miss_ps),
        each.stale,
        each.wrong,
        each.retransmissions,
    ]


def _shown(cell: Cell) -> str:
    return f"{cell:,}" if isinstance(cell, int | float) else str(cell)


def print_parameter_stores(console: Console, results: Sequence[ParameterStoreResult]) -> None:
    """Print a row for each."""
    print_figures(
        console,
        "[bold]parameter stores: pulls, µs[/bold] (time is emulated)",
        _COLUMNS,
        (list(map(_shown, _row(each))) for each in results),
        is_narrow=True,
    )


def report_parameter_stores(results: Sequence[ParameterStoreResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Return a table with a row for each."""
    yield ReportTable("Parameter stores", list(_COLUMNS), list(map(_row, results)), "latencies in µs")


PARAMETER_STORES = ResultKind(
    key="parameter_stores",
    meaning="Of each item of requests to a parameter store.",
    model=ParameterStoreResult,
    is_checked=lambda _: True,
    show=print_parameter_stores,
    order=9,
    report=report_parameter_stores,
    problems=lambda each: problems_of_service(each.latency_ps, each.time_ps),
    name="cached_blocks",
    labels=("cached_blocks", "skew"),
    measured=(
        MeasuredColumn("pulls", "million/s", 3, "pulls_per_s", 1e6),
        MeasuredColumn("hit rate", "", 3, "hit_rate"),
    ),
)
