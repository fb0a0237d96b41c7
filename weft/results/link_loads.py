"""Loads of links by kind of traffic: measured at ports, summed by the tiers that links join."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console

from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_size
from weft.recording.places import Places
from weft.recording.tables import Names, Table
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import ReportPart
from weft.topologies import FabricSpec

BytesByKind = Mapping[str, Mapping[str, int]]
"""By port, what it has sent of each kind of traffic."""


@dataclass(frozen=True)
class LinkLoadResult(PlainData):
    """Load of a kind of traffic on the links from one tier to another, over the whole run.

    Bytes are counted on the wire, with headers, as ports count them; frames of flow control are left out.
    """

    links: str
    """Where they lead from, and to: `host to leaf`."""
    kind: str
    """A category of jobs' operations; where these have none, a collective's name or `messages`. `acknowledgements` are
    all of them, and CNPs; `others` what no job sent."""
    ports: int
    """How many ports send into such links."""
    transmitted_bytes: int
    """Bytes of the kind that all of them sent."""
    share: float
    """Share of their capacity while traffic ran."""
    busiest_port: str
    """The one that sent most of the kind."""
    busiest_share: float
    """Share of the busiest link's capacity."""


def link_loads(fabric: FabricSpec, sent: BytesByKind, traffic_ps: int) -> list[LinkLoadResult]:
    """Return what links between each two tiers carried of each kind that they carried any of, from hosts upwards."""
    places, roles = Places(fabric), _Roles(fabric)
    ports_of: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for port in sent:
        ports_of[roles.role(port), roles.role(places.peer(port))].append(port)
    kinds = list(dict.fromkeys(kind for of_port in sent.values() for kind in of_port))
    results = []
    for (source, destination), ports in sorted(ports_of.items(), key=lambda item: roles.key(*item[0])):
        could = {port: places.link(port).rate_bps * traffic_ps / 8e12 for port in ports}
        for kind in kinds:
            carried = {port: sent[port].get(kind, 0) for port in ports}
            total = sum(carried.values())
            if total:
                busiest = max(ports, key=lambda port: _share(carried[port], could[port]))
                results.append(
                    LinkLoadResult(
                        links=f"{source} to {destination}",
                        kind=kind,
                        ports=len(ports),
                        transmitted_bytes=total,
                        share=_share(total, sum(could.values())),
                        busiest_port=busiest,
                        busiest_share=_share(carried[busiest], could[busiest]),
                    )
                )
    return results


def loads_table(fabric: FabricSpec, sent: BytesByKind) -> Table:
    """Return the table `loads`: a row for each port and kind, as schema.py has its columns."""
    places = Places(fabric)
    rows = [(port, kind, size) for port, of_port in sent.items() for kind, size in of_port.items()]
    return {
        "port": Names.of([port for port, _, _ in rows]),
        "peer": Names.of([places.peer(port) for port, _, _ in rows]),
        "kind": Names.of([kind for _, kind, _ in rows]),
        "transmitted_bytes": np.array([size for _, _, size in rows], np.int64),
    }


_Row = tuple[str, Mapping[str, float]]


def _table(kinds: Iterable[str]) -> ResultTable[_Row]:
    """Return the table with a column for each kind of traffic; its rows have shares by kind."""

    def column(kind: str) -> Column[_Row]:
        return Column(
            kind,
            lambda row: None if kind not in row[1] else 100 * row[1][kind],
            form="{:.1f}".format,
            page={"form": lambda percent: f"{percent:.1f} %" if percent else ""},
        )

    return ResultTable(
        "Load of links by kind of traffic",
        (
            Column("", lambda row: row[0], is_name=True, page={"title": "links"}),
            *map(column, kinds),
            Column("all", lambda row: 100 * sum(row[1].values()), form="{:.1f} %".format, terminal=None),
        ),
        "[bold]load of links by kind of traffic[/bold] (% of what they could have carried while traffic ran)",
        "of what links could have carried while traffic ran, headers included",
    )


def _rows(results: Sequence[LinkLoadResult]) -> list[_Row]:
    shares: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for each in results:
        shares[each.links][each.kind] = each.share
    return list(shares.items())


def _kinds(results: Sequence[LinkLoadResult]) -> list[str]:
    return list(dict.fromkeys(each.kind for each in results))


def print_link_loads(console: Console, results: Sequence[LinkLoadResult]) -> None:
    """Print the share of links by tier and kind, and the busiest port of each kind."""
    kinds = _kinds(results)
    _table(kinds).print(console, _rows(results))
    for kind in kinds:
        most = max((each for each in results if each.kind == kind), key=lambda each: each.busiest_share)
        total = format_size(sum(each.transmitted_bytes for each in results if each.kind == kind))
        console.print(f"{kind}: {total} on all links, most on {most.busiest_port}, {100 * most.busiest_share:.1f} %")


def _report(results: Sequence[LinkLoadResult], _: FabricSpec) -> Iterator[ReportPart]:
    yield _table(_kinds(results)).part(_rows(results))


LINK_LOADS = ResultKind(key="link_loads", model=LinkLoadResult, show=print_link_loads, report=_report)


def _share(carried_bytes: int, could_bytes: float) -> float:
    return carried_bytes / could_bytes if could_bytes else 0.0


class _Roles:
    """The roles of nodes, and how far they are from hosts."""

    def __init__(self, fabric: FabricSpec) -> None:
        self._roles = {switch.name: switch.role for switch in fabric.switches}
        self._tiers = {switch.role: switch.tier for switch in fabric.switches}

    def role(self, port: str) -> str:
        return self._roles.get(port.rpartition(":")[0], "host")

    def key(self, source: str, destination: str) -> tuple[int, int, str, str]:
        return self._tiers.get(source, -1), self._tiers.get(destination, -1), source, destination
