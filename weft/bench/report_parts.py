"""Tables of a report that no test has of its own: KPIs, repeatability, health, what is not applicable."""

from __future__ import annotations

from collections.abc import Sequence

from weft.bench.kpis import Kpi
from weft.bench.model import BenchReport, KpiValue, Status, TestReport
from weft.bench.suites import SUITES
from weft.quantities.units import PS_PER_US
from weft.results.report_parts import Cell, ReportTable

_LARGEST_CV = 0.05
"""Largest coefficient of variation that the draft recommends."""


def named(test: TestReport) -> str:
    """Return a test's section and title, with its variant."""
    return f"{test.section} {test.title}{f' ({test.variant})' if test.variant else ''}"


def shown_kpi(value: KpiValue) -> str:
    """Return a KPI's value to four digits, with its relation."""
    number = f"{value.value:,.0f}" if abs(value.value) >= 10_000 else f"{value.value:.4g}"
    return number if value.relation == "=" else f"{value.relation} {number}"


def kpi_table(report: BenchReport) -> ReportTable:
    """Return the draft's Appendix A, filled: a row for each value, or with why there is none.

    KPIs of tests that were not chosen are left out.
    """
    rows: list[list[Cell]] = []
    for kpi in SUITES[report.suite].kpis:
        tests = [test for test in report.tests if test.section in kpi.sections]
        found = [(test, value) for test in tests for value in test.measured.kpis if value.kpi == kpi.name]
        if found:
            rows += [
                [kpi.name, test.section, shown_kpi(value), kpi.unit, _condition(test, value)] for test, value in found
            ]
        elif tests:
            sections = ", ".join(dict.fromkeys(test.section for test in tests))
            rows.append([kpi.name, sections, "none", kpi.unit, _why_none(kpi, tests)])
    columns = ["KPI", "test", "value", "unit", "condition"]
    return ReportTable("KPIs (Appendix A: KPI-to-Test Mapping Summary)", columns, rows)


def _condition(test: TestReport, value: KpiValue) -> str:
    return "; ".join(filter(None, (value.condition, test.variant)))


def _why_none(kpi: Kpi, tests: Sequence[TestReport]) -> str:
    reasons = list(dict.fromkeys(f"{test.status}: {_first_line(test.reason)}" for test in tests if test.reason))
    return "; ".join(reasons) or f"no value under these conditions ({kpi.method})"


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines and lines[0].startswith("Traceback") else (lines[0] if lines else "")


def status_table(report: BenchReport) -> ReportTable:
    """Return a row for each test: how it ended, and why."""
    rows: list[list[Cell]] = [
        [test.section, test.title, test.variant or "as it is", str(test.status), test.trials, _first_line(test.reason)]
        for test in report.tests
    ]
    return ReportTable("Tests", ["section", "test", "variant", "status", "trials", "reason"], rows)


def health_table(report: BenchReport) -> ReportTable:
    """Return the health indicators of each test that was measured."""
    rows: list[list[Cell]] = [
        [
            named(test),
            test.health.packets,
            test.health.dropped_packets,
            round(100 * test.health.ecn_marked_packets / max(1, test.health.packets), 3),
            test.health.pfc_pauses,
            round(test.health.paused_ps / PS_PER_US, 1),
            test.health.retransmitted_packets,
            test.health.trimmed_packets,
            test.health.out_of_sequence_packets,
            test.health.largest_queue_bytes,
        ]
        for test in report.tests
        if test.status is Status.MEASURED
    ]
    columns = ["test", "packets", "dropped", "ECN marking ratio (%)", "PFC pauses", "paused (us)"]
    columns += ["sent again", "trimmed", "out of order", "largest queue (B)"]
    return ReportTable("Fabric health indicators", columns, rows, "all trials of a test together")


def repeatability_table(report: BenchReport) -> ReportTable:
    """Return the draft's repeatability statement."""
    rows: list[list[Cell]] = []
    for test in report.tests:
        for each in test.measured.repeatability:
            variation = each.coefficient_of_variation
            rows.append(
                [
                    named(test),
                    each.metric,
                    each.unit,
                    each.iterations,
                    f"{each.mean:.4g}",
                    "one iteration" if variation is None else f"{100 * variation:.2f}",
                    "" if variation is None else ("yes" if variation < _LARGEST_CV else "no"),
                ]
            )
    columns = ["test", "metric", "unit", "iterations", "mean", "CV (%)", "below 5 %"]
    return ReportTable("Repeatability", columns, rows, "CV: standard deviation over the mean")


def anomalies(report: BenchReport) -> list[str]:
    """Return the draft's list of deviations, failures and unexpected behaviour."""
    found = [
        f"{named(test)}: failed: {_first_line(test.reason)}" for test in report.tests if test.status is Status.FAILED
    ]
    found += [f"{named(test)}: {each}" for test in report.tests for each in test.measured.anomalies]
    lossy = [test for test in report.tests if test.health.dropped_packets]
    found += [f"{named(test)}: {test.health.dropped_packets} packets were dropped" for test in lossy]
    return found


def scaled(report: BenchReport) -> list[str]:
    """Return how procedures differ from the draft's."""
    return [f"{named(test)}: {each}" for test in report.tests for each in test.measured.scaled]


def facts(title: str, values: dict[str, str]) -> ReportTable:
    """Return a table of names and values."""
    return ReportTable(title, ["parameter", "value"], [[key, value] for key, value in values.items()])


def of_variant(title: str, variant: str) -> str:
    """Return a title with the variant that it is of."""
    return f"{title}, {variant}" if variant else title


def verdict(report: BenchReport) -> str:
    """Return how many tests ended in which way."""
    counts = {status: sum(test.status is status for test in report.tests) for status in Status}
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count)
