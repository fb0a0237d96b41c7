"""The report of a benchmark as data, from which JSON, Markdown and the page are made."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from weft.results.json_files import read_whole, write_object
from weft.results.report_parts import BarFigure, CurveFigure, ReportTable

REPORT_FILE = "bench.json"
_MOST_BYTES = 1 << 28


class Status(StrEnum):
    """How a test has ended."""

    MEASURED = "measured"
    NOT_APPLICABLE = "not applicable"
    FAILED = "failed"


@dataclass(frozen=True)
class KpiValue:
    """A KPI's value, in the KPI's unit, and the condition under which it was measured.

    `relation` says that the true value is larger (">") or at least as large ("≥"): the trials ended before it.
    """

    kpi: str
    value: float
    condition: str = ""
    relation: Literal["=", ">", "≥"] = "="


@dataclass(frozen=True)
class Repeatability:
    """Iterations of a test's primary metric, and how far they spread.

    `coefficient_of_variation` is the sample's standard deviation over the mean, None for one iteration.
    """

    metric: str
    unit: str
    iterations: int
    mean: float
    coefficient_of_variation: float | None


@dataclass(frozen=True)
class Health:
    """The drafts' fabric health indicators that a fabric of Weft has, of all trials of a test together.

    `packets` counts all that hosts sent, acknowledgements included.
    """

    packets: int = 0
    dropped_packets: int = 0
    ecn_marked_packets: int = 0
    pfc_pauses: int = 0
    paused_ps: int = 0
    retransmitted_packets: int = 0
    out_of_sequence_packets: int = 0
    trimmed_packets: int = 0
    largest_queue_bytes: int = 0

    def together_with(self, other: Health) -> Health:
        """Return both together."""
        values = {
            each.name: getattr(self, each.name) + getattr(other, each.name)
            for each in fields(self)
            if each.name != "largest_queue_bytes"
        }
        return Health(**values, largest_queue_bytes=max(self.largest_queue_bytes, other.largest_queue_bytes))

    @property
    def is_clean(self) -> bool:
        """Whether no trial dropped, marked, paused, trimmed or repeated a packet."""
        return not any(
            (
                self.dropped_packets,
                self.ecn_marked_packets,
                self.pfc_pauses,
                self.retransmitted_packets,
                self.trimmed_packets,
            )
        )


@dataclass(frozen=True)
class Measured:
    """A test's findings.

    Attributes:
        kpis: what Appendix A of the draft asks of the test.
        scaled: how the procedure differs from the draft's, in sentences.
        anomalies: what the draft's section "Anomalies" is for.
    """

    tables: list[ReportTable] = field(default_factory=list)
    curves: list[CurveFigure] = field(default_factory=list)
    bars: list[BarFigure] = field(default_factory=list)
    kpis: list[KpiValue] = field(default_factory=list)
    repeatability: list[Repeatability] = field(default_factory=list)
    scaled: list[str] = field(default_factory=list)
    anomalies: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TestReport:
    """One test under one variant; `reason` says why it was not measured."""

    section: str
    name: str
    title: str
    variant: str
    status: Status
    reason: str = ""
    trials: int = 0
    health: Health = field(default_factory=Health)
    measured: Measured = field(default_factory=Measured)


@dataclass(frozen=True)
class BenchReport:
    """A suite's report.

    Attributes:
        suite: training or inference.
        draft: the document that defines the tests, with its version.
        fabric: name of the scenario that describes the fabric.
        identification: the draft's table of DUT parameters.
        topology: facts of the topology, and its drawing as SVG in `drawing`.
        configuration: parameters in force, for each variant.
        hosts: the draft's host configuration, for each variant.
        made_by: version of Weft, seed and the like: what repeats the report.
    """

    suite: str
    draft: str
    profile: str
    fabric: str
    identification: dict[str, str]
    topology: dict[str, str]
    drawing: str
    configuration: dict[str, dict[str, str]]
    hosts: dict[str, dict[str, str]]
    made_by: dict[str, str]
    tests: list[TestReport]

    @property
    def ok(self) -> bool:
        """Whether no test failed."""
        return all(test.status is not Status.FAILED for test in self.tests)

    def as_json(self) -> str:
        """Return it as bench.json has it."""
        return _ADAPTER.dump_json(self, indent=1).decode()

    def write(self, directory: Path) -> Path:
        """Write bench.json; returns its path. EnvironmentLacksError: it cannot be written."""
        return write_object(_ADAPTER, directory / REPORT_FILE, self)


_ADAPTER: TypeAdapter[BenchReport] = TypeAdapter(BenchReport)


def read_report(directory: Path) -> BenchReport:
    """Return the report of a directory. BadInputError: it has none, or not one that `weft bench` wrote."""
    return read_whole(
        _ADAPTER, directory / REPORT_FILE, _MOST_BYTES, "not a report that `weft bench` of this version wrote"
    )


def is_bench(directory: Path) -> bool:
    """Return whether a directory is one of `weft bench`."""
    return (directory / REPORT_FILE).exists()
