"""The committed reports of four fabrics, the page that compares them, and their tests repeated at the smallest size."""

from __future__ import annotations

from pathlib import Path

import fabric_reports
import pytest
from click.testing import CliRunner

from weft.bench.model import Status, read_report
from weft.bench.suites import SUITES
from weft.cli import weft
from weft.paths import EXAMPLES_DIRECTORY

REPORTS = fabric_reports.committed_reports()
EVERYWHERE = {"training": ("5.2", "9.1", "11.2"), "inference": ("5.1", "7.1", "8.1")}
"""Tests of each suite that every one of the fabrics can have, and that take seconds."""


def test_the_committed_page_follows_from_the_reports() -> None:
    assert fabric_reports.PAGE.read_text(encoding="utf-8") == fabric_reports.page()


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.file)
def test_every_kpi_of_the_draft_has_a_value_or_a_reason(report: fabric_reports.CommittedReport) -> None:
    named = {name for name, _, _ in report.kpis}
    assert {kpi.name for kpi in SUITES[report.suite].kpis} == {name.replace("\\_", "_") for name in named}
    assert all(value or condition for (_, _, condition), (value, _) in report.kpis.items())


@pytest.mark.slow
@pytest.mark.parametrize("suite", EVERYWHERE)
@pytest.mark.parametrize("fabric", fabric_reports.FABRICS)
def test_tests_of_the_reports_run_at_their_smallest(suite: str, fabric: str, tmp_path: Path) -> None:
    chosen = [word for section in EVERYWHERE[suite] for word in ("--test", section)]
    command = ["bench", suite, str(EXAMPLES_DIRECTORY / "bench" / f"{fabric}.yaml"), "--out", str(tmp_path), *chosen]
    done = CliRunner().invoke(weft, command, standalone_mode=False, catch_exceptions=False)
    assert done.return_value == 0
    found = read_report(tmp_path)
    assert {test.section for test in found.tests} == set(EVERYWHERE[suite])
    for test in found.tests:
        assert test.status in (Status.MEASURED, Status.NOT_APPLICABLE)
        assert test.status is Status.MEASURED or test.reason
