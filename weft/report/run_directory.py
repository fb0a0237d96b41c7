"""The files that `weft run --out` has written to a directory: read at once and checked for consistency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import topologies
from weft.errors import BadInputError
from weft.quantities.arrays import Integers
from weft.quantities.json_problems import quoted
from weft.recording.places import Places
from weft.recording.reading import SavedTable, check_names, read_table
from weft.recording.schema import STEP_KINDS, TABLES, Holds
from weft.recording.tables import Names, Table, integers_of, names_of, row_count
from weft.results.flows import FLOWS
from weft.results.kinds import ResultKind, result_kinds
from weft.results.limits import Evidence, Limit, limits_of
from weft.results.link_events import LinkEventResult
from weft.results.model import Phase, Results
from weft.results.port_loads import port_loads
from weft.results.results_file import read_results
from weft.results.run_result import RESULTS_FILE
from weft.topologies import FabricLink, FabricSpec, TopologyError


@dataclass(frozen=True)
class RunDirectory:
    """Results, and those tables that the run has written.

    `traffic`: the results of each kind, with their flows' records, where these are there. `missing`: what a page would
    show and the directory does not have, in words.
    """

    path: Path
    results: Results
    fabric: FabricSpec
    tables: Mapping[str, Table]
    traffic: Sequence[tuple[ResultKind[Any], Sequence[Any]]]
    missing: Sequence[str] = ()

    @classmethod
    def read(cls, path: Path) -> RunDirectory:
        """Read a directory.

        Raises:
            BadInputError: it has no results, or a file is not what `weft run` writes; says which, and the key or line.
        """
        file = path / RESULTS_FILE
        if not file.exists():
            raise BadInputError(
                f"has no {RESULTS_FILE} and no sweep.json: name a directory that weft run or weft sweep has written",
                place=path,
            )
        results = read_results(file)
        fabric = _fabric(file, results)
        _check_links(file, results, fabric)
        saved = {name: table for name in TABLES if (table := read_table(path, name)) is not None}
        _check_names(file, fabric, saved)
        tables = {name: each.columns for name, each in saved.items()}
        traffic = [(kind, _with_flows(path, kind, results, len(fabric.hosts))) for kind in result_kinds()]
        missing = [
            *(f"{RESULTS_FILE} has no '{key}'" for key in results.absent),
            *_absent_tables(results, tables),
            *_absent_flows(traffic),
        ]
        return cls(path, results, fabric, tables, traffic, missing)

    @property
    def phases(self) -> list[Phase]:
        """Every part of the traffic, in order of time; empty where the results have none."""
        return self.results.phases

    @property
    def traffic_ps(self) -> int:
        """Time in which any phase ran, in picoseconds of emulated time; concurrent phases count once."""
        return self.results.traffic_ps

    def rows(self, table: str) -> int:
        """Return how many rows a table has; 0 where there is none."""
        return row_count(self.tables[table]) if table in self.tables else 0

    def integers(self, table: str, column: str) -> Integers:
        """Return a column of numbers."""
        return integers_of(self.tables[table], column)

    def names(self, table: str, column: str) -> Names:
        """Return a column of names."""
        return names_of(self.tables[table], column)

    def texts(self, table: str, column: str) -> NDArray[np.object_]:
        """Return a column of names as texts."""
        return self.names(table, column).texts()

    @cached_property
    def utilisation(self) -> dict[str, float]:
        """Share of the traffic's time in which each port was sending; none where nothing says."""
        return port_loads(self.tables["ports"], self.traffic_ps) if "ports" in self.tables else {}

    @cached_property
    def evidence(self) -> Evidence:
        """Figures that decide what limited the run."""
        flows = next(found for kind, found in self.traffic if kind is FLOWS)
        return Evidence(self.results, self.fabric, self.tables, flows)

    @cached_property
    def limits(self) -> list[Limit]:
        """Limits of the run, the first to look at first."""
        return limits_of(self.evidence)

    @cached_property
    def failures(self) -> dict[FabricLink, list[LinkEventResult]]:
        """Events of each link that failed or came back, in order."""
        events: dict[FabricLink, list[LinkEventResult]] = {}
        for event in self.results.link_events:
            events.setdefault(_link_of(self.fabric, event), []).append(event)
        return events


def _fabric(file: Path, results: Results) -> FabricSpec:
    try:
        return topologies.from_parameters(results.made_by.fabric)
    except (TopologyError, TypeError, AttributeError, KeyError, OverflowError) as error:
        # A damaged value may be of any type, which builders need not expect.
        raise BadInputError(f"made_by.fabric: {error}", place=file) from None


def _link_of(fabric: FabricSpec, event: LinkEventResult) -> FabricLink:
    """Return the link of an event, which names it NODE<->NODE, or one direction of it NODE->NODE."""
    return fabric.link_between(*_ends_of(event))


def _ends_of(event: LinkEventResult) -> list[str]:
    return event.link.replace("<->", "->").split("->")


def _check_links(file: Path, results: Results, fabric: FabricSpec) -> None:
    for index, event in enumerate(results.link_events):
        try:
            if len(_ends_of(event)) != 2:
                raise TopologyError(f"{quoted(event.link)} is not NODE<->NODE")
            _link_of(fabric, event)
        except TopologyError as error:
            raise BadInputError(f"link_events[{index}].link: {error}", place=file) from None


def _check_names(file: Path, fabric: FabricSpec, saved: Mapping[str, SavedTable]) -> None:
    places = Places(fabric)
    choices: dict[Holds, Sequence[str]] = {
        Holds.HOST: [host.name for host in fabric.hosts],
        Holds.PORT: places.ports,
        Holds.PEER: list(dict.fromkeys([*places.ports, *map(places.peer, places.ports)])),
        Holds.PLACE: places.names,
        Holds.STEP_KIND: STEP_KINDS,
    }
    for name, table in saved.items():
        check_names(table, TABLES[name], choices.get, f"the run's fabric ({file.name})")


def _absent_tables(results: Results, tables: Mapping[str, Table]) -> list[str]:
    asked = ["ports", *results.made_by.observe.tables]
    return [f"no table '{name}', though the run recorded it" for name in asked if name not in tables]


def _with_flows(path: Path, kind: ResultKind[Any], results: Results, hosts: int) -> list[Any]:
    """Return the results of a kind with their flows' records, where these are there."""
    found, file = results.of(kind), kind.flow_file
    if file is None:
        return found
    return [replace(each, records=file.read(path, number, hosts)) for number, each in enumerate(found)]


def _absent_flows(traffic: Iterable[tuple[ResultKind[Any], Sequence[Any]]]) -> list[str]:
    return [
        f"no {kind.flow_file.of(number)}"
        for kind, found in traffic
        if kind.flow_file is not None
        for number, each in enumerate(found)
        if not each.records
    ]
