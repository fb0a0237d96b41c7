"""Routes by demand in results: how full the fullest link was to become, and what hashes would have done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from weft.controller.demand import DemandLoads
from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import MOST_ROWS


@dataclass(frozen=True)
class DemandRoutesResult(PlainData):
    """Routes of one plane, chosen before a run. Loads are times that the bytes of messages take at the link's rate."""

    derived: ClassVar[Mapping[str, str]] = {"gain": "gain"}

    phase: str
    """The run's name; several names if tasks ran together."""
    plane: int
    """The plane."""
    queue_pairs: int
    """Queue pairs of the run's traffic matrix in all planes."""
    fullest_ps: int
    """Load of the fullest link between switches, with the chosen routes."""
    ecmp_ps: int
    """Load of the fullest link if a hash spreads queue pairs over shortest paths: the mean of 4 to 32 draws."""
    bound_ps: int
    """No routing has a lower load: what leaves or enters a switch goes over its live links, a queue pair over one."""
    destinations: int
    """NICs with routes of their own; 0 if hashes do better."""
    left_to_ecmp: int
    """NICs that some switches had no free entry for, so that they hash their packets."""
    most_entries: int
    """Most such routes of a switch, of one IP version."""

    @classmethod
    def of(cls, phase: str, queue_pairs: int, loads: DemandLoads) -> DemandRoutesResult:
        """Return the result of a plane."""
        return cls(phase, queue_pairs=queue_pairs, **vars(loads))

    @property
    def gain(self) -> float:
        """Load with hashes over load with the chosen routes."""
        return self.ecmp_ps / self.fullest_ps if self.fullest_ps else 1.0


_TABLE = ResultTable[DemandRoutesResult](
    "Routes by demand",
    (
        Column("run", "phase", is_name=True),
        Column("plane", "plane"),
        Column("queue\npairs", "queue_pairs"),
        Column("fullest\nlink", "fullest_ps", form=format_time),
        Column("by hashes", "ecmp_ps", form=format_time),
        Column("at least", "bound_ps", form=format_time),
        Column("gain", "gain", digits=2),
        Column("destinations", "destinations"),
        Column("routes of\na switch", "most_entries"),
    ),
    most=MOST_ROWS,
    which="the first",
)
DEMAND_ROUTES = ResultKind(key="demand_routes", model=DemandRoutesResult, tables=(_TABLE,))
