"""Reports side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from weft.bench.model import BenchReport, KpiValue, read_report
from weft.bench.report_parts import health_table, named, shown_kpi
from weft.bench.suites import SUITES
from weft.errors import BadInputError
from weft.report.html import Section, html_page
from weft.results.report_parts import Cell, ReportTable

_NOTHING = "none"


@dataclass(frozen=True)
class ComparedReports:
    """Reports of one suite, by name, in the order in which they were given."""

    reports: Mapping[str, BenchReport]

    @property
    def names(self) -> list[str]:
        """Names of the reports."""
        return list(self.reports)

    def tables(self) -> list[ReportTable]:
        """Return what differs in the fabrics, the KPIs with ratios to the first report, the tests, and their health."""
        found = [self._differences(), self._kpis(), self._statuses(), *self._health()]
        return [table for table in found if table.rows]

    def page(self) -> str:
        """Return the same as one HTML page."""
        first = next(iter(self.reports.values()))
        return html_page(
            title=" and ".join(self.names),
            verdict=escape(SUITES[first.suite].title),
            subtitle=f"{first.draft}; ratios are over {self.names[0]}",
            sections=[Section.table(table) for table in self.tables()],
            data={"figures": {}},
        )

    def _differences(self) -> ReportTable:
        reports = self.reports.values()
        places: dict[str, list[str]] = {}
        for number, report in enumerate(reports):
            values = {"profile": report.profile, **report.identification, **report.topology}
            for variant, by_key in (*report.configuration.items(), *report.hosts.items()):
                values |= {f"{key}{f' ({variant})' if variant else ''}": value for key, value in by_key.items()}
            for key, value in values.items():
                places.setdefault(key, [_NOTHING] * len(reports))[number] = value
        rows: list[list[Cell]] = [[key, *values] for key, values in places.items() if len(set(values)) > 1]
        return ReportTable("What differs in the fabrics", ["parameter", *self.names], rows)

    def _kpis(self) -> ReportTable:
        rows: list[list[Cell]] = []
        first = next(iter(self.reports.values()))
        for kpi in SUITES[first.suite].kpis:
            found = [_values(report, kpi.name) for report in self.reports.values()]
            for key in _paired_keys(found):
                values = [each.get(key) for each in found]
                row: list[Cell] = [kpi.name, key[0], kpi.unit, key[1] or "as in each report"]
                row += [_NOTHING if value is None else shown_kpi(value) for value in values]
                row += list(_ratios(values))
                rows.append(row)
        columns = ["KPI", "test", "unit", "condition", *self.names]
        columns += [f"{name}: ratio" for name in self.names[1:]]
        return ReportTable("KPIs", columns, rows, f"ratios are over {self.names[0]}")

    def _statuses(self) -> ReportTable:
        by_test: dict[str, list[str]] = {}
        for number, report in enumerate(self.reports.values()):
            for test in report.tests:
                by_test.setdefault(named(test), [_NOTHING] * len(self.reports))[number] = str(test.status)
        rows: list[list[Cell]] = [[test, *found] for test, found in by_test.items() if len(set(found)) > 1]
        return ReportTable("Tests that ended differently", ["test", *self.names], rows)

    def _health(self) -> Iterator[ReportTable]:
        tables = [health_table(report) for report in self.reports.values()]
        for place, column in enumerate(tables[0].columns[1:], 1):
            by_test: dict[str, list[Cell]] = {}
            for number, table in enumerate(tables):
                for row in table.rows:
                    by_test.setdefault(str(row[0]), [_NOTHING] * len(tables))[number] = row[place]
            rows = [[test, *found] for test, found in by_test.items() if len(set(found)) > 1]
            if column not in ("packets",):
                yield ReportTable(f"Health: {column}", ["test", *self.names], rows)


Key = tuple[str, str]


def _values(report: BenchReport, kpi: str) -> dict[Key, KpiValue]:
    """Return the values of a KPI by section and condition, its variant included."""
    return {
        (test.section, "; ".join(filter(None, (value.condition, test.variant)))): value
        for test in report.tests
        for value in test.measured.kpis
        if value.kpi == kpi
    }


def _paired_keys(found: Sequence[dict[Key, KpiValue]]) -> list[Key]:
    """Return the keys of all reports; where each has one value of a section, its condition does not matter."""
    sections = {section for each in found for section, _ in each}
    for section in sections:
        own = [[key for key in each if key[0] == section] for each in found]
        if all(len(keys) == 1 for keys in own) and len({keys[0] for keys in own}) > 1:
            for each, (key,) in zip(found, own, strict=True):
                each[section, ""] = each.pop(key)
    return sorted({key: None for each in found for key in each}, key=lambda key: key[0])


def _ratios(values: Sequence[KpiValue | None]) -> Iterator[Cell]:
    one, *others = values
    for other in others:
        yield ("" if one is None or other is None or not one.value else round(other.value / one.value, 3))


def read_reports(directories: Sequence[Path]) -> ComparedReports:
    """Read the reports of directories of `weft bench`.

    Raises:
        BadInputError: there are fewer than two, one has none, or they are of different suites.
    """
    if len(directories) < 2:
        raise BadInputError("one report", place=directories[0], valid="two or more to compare")
    read = {_name(path, directories): read_report(path) for path in directories}
    suites = {report.suite for report in read.values()}
    if len(suites) > 1:
        raise BadInputError(f"reports of different suites: {', '.join(sorted(suites))}", valid="reports of one suite")
    return ComparedReports(read)


def _name(path: Path, directories: Sequence[Path]) -> str:
    """Return a directory's name, or its whole path if another one has the name."""
    alike = [each for each in directories if each.name == path.name]
    return path.name if len(alike) == 1 else str(path)
