"""The critical path of a job, as results have it: what its time went to, on which ranks and links."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rich.console import Console
from rich.markup import escape

from weft.quantities.readable import Unit, counted, time_unit
from weft.results.columns import Column, ResultTable
from weft.results.figure_tables import Layout
from weft.results.report_parts import ReportTable, shown_of
from weft.topologies import FabricSpec, shortest_paths
from weft.traffic.jobs import Job
from weft.traffic.jobs.breakdown import Times
from weft.traffic.jobs.critical_path import CriticalPath, StretchKind, critical_path
from weft.traffic.jobs.pairs import Pair, PairsOfStretches
from weft.traffic.jobs.placing import RankPlaces

MOST_LISTED = 20
_MOST_PATHS = 64


@dataclass(frozen=True)
class CriticalPathResult:
    """The chain of operations and waits that a job's duration consists of.

    Found by following what let each operation start, and what let it be done, back from the last one
    ([definitions](traffic.md#the-critical-path)).
    """

    parts_ps: dict[str, int]
    """Time by what it went to: a kind of stretch and, where operations say it, a category. The sum is the duration."""
    ranks_ps: dict[str, int]
    """Time on ranks, of up to 20 with the most; a message's is its receiver's."""
    rank_count: int
    """How many ranks it visits."""
    ports_ps: dict[str, int]
    """Time for which what was waited for could use a port, of up to 20 with the most.

    Of several shortest paths each counts for its share, so these are expectations under equal use of all of them.
    """
    stretches: int
    """How many there are."""
    latencies: float = 0.0
    """How many messages between hosts follow each other on it, as the costs of its collectives' algorithms count them:
    where each takes longer, and no transfer hides that, the job takes so many times as much longer."""


def critical_path_result(
    job: Job, times: Sequence[Times], ranks: Sequence[int], places: RankPlaces, fabric: FabricSpec
) -> CriticalPathResult:
    """Return the path of a job that has run on these ranks of a fabric."""
    path = critical_path(job, times)
    by_rank, pairs = path.by_rank(), PairsOfStretches(job, ranks, places)
    return CriticalPathResult(
        parts_ps=dict(_parts(path)),
        ranks_ps={f"rank {rank}": time_ps for rank, time_ps in by_rank.most_common(MOST_LISTED)},
        rank_count=len(by_rank),
        ports_ps={port: round(time_ps) for port, time_ps in _port_times(path, pairs, places, fabric)},
        stretches=len(path.stretches),
        latencies=sum(map(pairs.latencies, path.stretches)),
    )


def _parts(path: CriticalPath) -> Iterator[tuple[str, int]]:
    for (kind, category), time_ps in sorted(path.by_category().items(), key=lambda item: -item[1]):
        yield f"{kind}: {category}" if category else kind, time_ps


def _port_times(
    path: CriticalPath, pairs: PairsOfStretches, places: RankPlaces, fabric: FabricSpec
) -> list[tuple[str, float]]:
    lasted: Counter[tuple[Pair, ...]] = Counter()
    for stretch in path.stretches:
        if stretch.kind in (StretchKind.TRANSFER, StretchKind.COLLECTIVE) and (found := pairs.of(stretch)):
            lasted[found] += stretch.duration_ps
    planes = [plane for plane, rate in enumerate(places.plane_rates_bps) if rate]
    shares: dict[Pair, dict[str, float]] = {}
    sums: defaultdict[str, float] = defaultdict(float)
    for found, time_ps in lasted.items():
        # A port that several pairs use is waited for once.
        used: dict[str, float] = {}
        for pair in found:
            if pair not in shares:
                shares[pair] = _shares(pair, planes, fabric)
            for port, share in shares[pair].items():
                used[port] = max(used.get(port, 0.0), share)
        for port, share in used.items():
            sums[port] += time_ps * share
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:MOST_LISTED]


def _shares(pair: Pair, planes: Sequence[int], fabric: FabricSpec) -> dict[str, float]:
    """Return how often each port that sends is on a path between two hosts, with all paths of a plane alike."""
    shares: defaultdict[str, float] = defaultdict(float)
    source, destination = (fabric.hosts[rank].name for rank in pair)
    for plane in planes:
        paths = list(islice(shortest_paths(fabric, source, destination, plane), _MOST_PATHS))
        for path in paths:
            for hop in path.hops:
                shares[f"{hop.node}:{hop.port}"] += 1 / len(paths)
    return shares


def shares_table(unit: Unit, total_ps: int) -> ResultTable[tuple[str, int]]:
    """Return a table of times and their shares of a total; its rows have a name and a time."""
    return ResultTable(
        "",
        (
            Column("", lambda row: row[0], is_name=True),
            Column(
                unit.name,
                lambda row: unit.of(row[1]),
                form="{:,.3f}".format,
                page={"title": f"time ({unit.name})", "form": None, "digits": 3},
            ),
            Column("share", lambda row: 100 * row[1] / total_ps if total_ps else None, form="{:.1f} %".format),
        ),
        layout=Layout(is_narrow=True),
    )


def print_critical_path(console: Console, found: CriticalPathResult) -> None:
    """Print what the path's time went to, and the ranks and ports with the most of it."""
    total_ps = sum(found.parts_ps.values())
    if not total_ps:
        return
    unit = time_unit([total_ps])
    stretches = counted(found.stretches, "stretch", "stretches")
    console.print(f"critical path: {stretches} on {counted(found.rank_count, 'rank')}")
    shares_table(unit, total_ps).print(console, list(found.parts_ps.items()))
    for what, times in (
        ("most of it on ranks", found.ranks_ps),
        ("ports that it could wait for, each", found.ports_ps),
    ):
        most = [f"{escape(name)} {100 * time_ps / total_ps:.1f} %" for name, time_ps in islice(times.items(), 4)]
        if most:
            console.print(f"{what}: {', '.join(most)}")


def critical_path_tables(name: str, found: CriticalPathResult) -> Iterator[ReportTable]:
    """Return tables for a page: what the time went to, ranks, ports."""
    total_ps = sum(found.parts_ps.values()) or 1
    table = shares_table(time_unit([total_ps]), total_ps)
    for title, times, note in (
        ("", found.parts_ps, counted(found.stretches, "stretch", "stretches")),
        (" on ranks", found.ranks_ps, shown_of(len(found.ranks_ps), found.rank_count, "those with the most")),
        (
            " on ports",
            found.ports_ps,
            "time for which what was waited for could use a port; those with the most",
        ),
    ):
        yield table.part(list(times.items()), note, f"Critical path of {name}{title}")
