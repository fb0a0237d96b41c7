"""What `weft run --out` has left in a directory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import topologies
from topologies import FabricSpec, TopologyError
from weft.errors import BadInputError
from weft.recording.tables import Integers, Names, Table, read_table

TABLES = ("ports", "queues", "flows", "int", "drops", "pauses", "timeline")


@dataclass(frozen=True)
class RunDirectory:
    """Results, and those tables that the run has written."""

    path: Path
    results: dict[str, Any]
    tables: dict[str, Table]

    @classmethod
    def read(cls, path: Path) -> RunDirectory:
        """Read a directory. BadInputError: it has no results, or files that are not a run's."""
        file = path / "results.json"
        if not file.exists():
            raise BadInputError(
                f"{path}: has no results.json: name a directory that weft run --out has written"
            )
        try:
            results = json.loads(file.read_text(encoding="utf-8"))
            tables = {name: table for name in TABLES if (table := read_table(path, name)) is not None}
        except (ValueError, UnicodeDecodeError) as error:
            raise BadInputError(f"{path}: is not what weft run writes: {error}") from None
        if not isinstance(results, dict) or "made_by" not in results or "ports" not in tables:
            raise BadInputError(
                f"{path}: was not written by this version of weft run: it has no table of ports"
            )
        return cls(path, results, tables)

    @cached_property
    def fabric(self) -> FabricSpec:
        """The run's fabric. BadInputError if the results name none."""
        try:
            return topologies.from_parameters(self.results["made_by"]["fabric"])
        except (KeyError, TypeError, TopologyError) as error:
            raise BadInputError(f"{self.path}/results.json: made_by.fabric: {error}") from None

    @property
    def phases(self) -> list[dict[str, Any]]:
        """Name, start_ps and end_ps of every part of the traffic, in order."""
        phases: list[dict[str, Any]] = self.results.get("phases", [])
        return phases

    @property
    def traffic_ps(self) -> int:
        """For how long traffic ran."""
        return sum(phase["end_ps"] - phase["start_ps"] for phase in self.phases)

    def integers(self, table: str, column: str) -> Integers:
        """Return a column of numbers."""
        values = self.tables[table][column]
        if isinstance(values, Names):
            if row_texts := [text for text in values.texts() if text]:
                raise BadInputError(f"{self.path}/{table}: {column}: '{row_texts[0]}' is no number")
            return np.zeros(0, np.int64)
        return values

    def names(self, table: str, column: str) -> Names:
        """Return a column of names; of an empty table, none."""
        values = self.tables[table][column]
        return values if isinstance(values, Names) else Names(np.zeros(0, np.int64), [])

    @cached_property
    def utilisation(self) -> dict[str, float]:
        """Share of the traffic's time in which each port was sending."""
        if not self.traffic_ps:
            return {}
        sent = self.integers("ports", "transmitted_bytes") * 8.0
        could = self.integers("ports", "rate_bps") * (self.traffic_ps * 1e-12)
        shares = np.divide(sent, could, out=np.zeros(len(sent)), where=could > 0)
        return dict(zip(self.names("ports", "port").texts().tolist(), shares.tolist(), strict=True))
