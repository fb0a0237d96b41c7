"""The training suite on small fabrics: what each test finds, the report's files, and what is not run again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.fabrics import LEAF_SPINE, LOSSLESS, PLANES, RAILS, subject
from weft.bench import report_parts as parts
from weft.bench.model import BenchReport, Status, read_report
from weft.bench.profile import Profile
from weft.bench.report_markdown import markdown
from weft.bench.report_page import bench_page
from weft.bench.running import run_bench
from weft.bench.subject import Subject
from weft.bench.suites import SUITES
from weft.bench.variants import Variant
from weft.errors import WeftError
from weft.trials import TrialRun

TRAINING = SUITES["training"]
VIRTUAL = [test for test in TRAINING.tests if not test.section.startswith("12.")]
"""Tests without the real clock."""


class Counted:
    """The trials that ran."""

    def __init__(self) -> None:
        self.trials = 0

    def begin(self, procedures: object) -> None:
        pass

    def planned(self, procedure: str, trials: int, left: int) -> None:
        pass

    def ended(self, procedure: str, run: TrialRun) -> None:
        self.trials += 1

    def done(self, procedure: str, error: WeftError | None) -> None:
        pass


@pytest.fixture(scope="module")
def two_tier(tmp_path_factory: pytest.TempPathFactory) -> tuple[Subject, BenchReport, Path]:
    """Return the whole suite's report of a small lossless fabric, without the real clock."""
    folder = tmp_path_factory.mktemp("two-tier")
    fabric = subject(folder, LEAF_SPINE, **LOSSLESS, control={"latency": "2us", "detection": "10us"})
    return fabric, run_bench(TRAINING, fabric, folder / "out", profile=Profile.SMOKE, tests=VIRTUAL), folder / "out"


def kpis(report: BenchReport) -> dict[tuple[str, str], float]:
    """Return values by KPI and condition."""
    return {(value.kpi, value.condition): value.value for test in report.tests for value in test.measured.kpis}


@pytest.mark.slow
def test_every_test_and_every_kpi_is_measured(two_tier: tuple[Subject, BenchReport, Path]) -> None:
    _, report, _ = two_tier
    assert {test.section: test.reason for test in report.tests if test.status is not Status.MEASURED} == {}
    measured = {value.kpi for test in report.tests for value in test.measured.kpis}
    assert {kpi.name for kpi in TRAINING.kpis} - measured == {"24h Stability"}
    for test in report.tests:
        sections = {kpi.name: kpi.sections for kpi in TRAINING.kpis}
        assert all(test.section in sections[value.kpi] for value in test.measured.kpis)
        assert test.measured.tables
        assert all(len(row) == len(table.columns) for table in test.measured.tables for row in table.rows)
        assert test.measured.scaled


@pytest.mark.slow
def test_figures_are_within_physical_bounds(two_tier: tuple[Subject, BenchReport, Path]) -> None:
    fabric, report, _ = two_tier
    found = kpis(report)
    rate_tbps = fabric.rank_rate_bps / 1e12
    for (kpi, condition), value in found.items():
        if kpi == "Throughput Rate":
            assert 0 < value <= rate_tbps * fabric.ranks
        if kpi in ("AllReduce BusBW", "AllGather BusBW", "UET Collective BusBW"):
            assert 0 < value <= rate_tbps * 1e3
        if kpi == "Synthetic JCT Ratio":
            assert value >= 1
        if kpi in ("UET Spray Efficacy", "Spray Efficacy"):
            assert 0.5 <= value <= 1
        if kpi == "ECMP Imbalance":
            assert 1 <= value <= 2
        if kpi == "Latency (P99)":
            # Three links of 500 ns each way, two of them between switches, at least.
            assert value >= (2.0 if "one-way" in condition else 4.0)
    (deviation,) = (value for (kpi, _), value in found.items() if kpi == "ECN Accuracy")
    assert deviation < 10
    assert found["PFC Deadlock", "cyclic traffic and two storms"] == 0
    assert found["Multi-Tenant Impact", "alltoall, overlap 100%"] > 1
    lost_us = [value for (kpi, _), value in found.items() if kpi == "Failover Time"]
    # Switches notice after 10 us and the controller answers within 2 us.
    assert all(0 < value <= 12.1 for value in lost_us)


@pytest.mark.slow
def test_a_lossless_fabric_loses_nothing_but_by_failures_and_storms(
    two_tier: tuple[Subject, BenchReport, Path],
) -> None:
    _, report, _ = two_tier
    lossy = {test.section for test in report.tests if test.health.dropped_packets}
    # 6.5 has bit errors and queues that overflow, 7.4 a watchdog that drops, 11 failures; UET has no PFC.
    assert lossy <= {"6.1", "6.2", "6.3", "6.4", "6.5", "6.6", "7.4", "9.4", "11.2", "11.3"}
    assert any("packets were dropped" in line for line in parts.anomalies(report))


@pytest.mark.slow
def test_the_report_is_written_and_read_back_and_nothing_runs_again(
    two_tier: tuple[Subject, BenchReport, Path],
) -> None:
    fabric, report, folder = two_tier
    assert read_report(folder) == report
    counted = Counted()
    again = run_bench(TRAINING, fabric, folder, profile=Profile.SMOKE, tests=VIRTUAL, progress=counted)
    assert counted.trials == 0
    assert again == report
    text = markdown(report)
    assert all(f"### {test.section} " in text for test in report.tests)
    page = bench_page(report)
    assert page == bench_page(again)
    assert all(kpi.name.replace("&", "&amp;") in page for kpi in TRAINING.kpis if kpi.name != "24h Stability")
    data = json.loads((folder / "bench.json").read_text(encoding="utf-8"))
    assert data["draft"] == TRAINING.draft


@pytest.mark.slow
def test_what_a_fabric_cannot_have_is_not_applicable_with_the_reason(tmp_path: Path) -> None:
    fabric = subject(tmp_path, {**PLANES, "spines": 1}, transport={"protocol": "mrc"}, int=False)
    tests = TRAINING.chosen(["7.2", "7.4", "8", "11.2", "5.3"])
    report = run_bench(TRAINING, fabric, tmp_path / "out", tests=tests)
    statuses = {test.section: test.status for test in report.tests}
    assert {section for section, status in statuses.items() if status is Status.NOT_APPLICABLE} == {
        "7.2",
        "7.4",
        "8.1",
        "8.2",
        "8.3",
        "8.4",
        "11.2",
    }
    assert all(test.reason for test in report.tests if test.status is Status.NOT_APPLICABLE)
    assert report.ok
    rows = {row[0]: row for row in parts.kpi_table(report).rows}
    assert rows["PFC Behavior"][2] == "none"
    assert "no PFC" in str(rows["PFC Behavior"][4])


@pytest.mark.slow
def test_an_uplink_that_carries_nothing_is_said_to_be_idle(tmp_path: Path) -> None:
    # AllReduces of whole hosts stay in their rails.
    report = run_bench(TRAINING, subject(tmp_path, RAILS), tmp_path / "out", tests=TRAINING.chosen(["11.2", "11.3"]))
    for test in report.tests:
        assert test.status is Status.MEASURED
        assert any("leaf uplink (idle)" in anomaly for anomaly in test.measured.anomalies)
        assert [kpi.value for kpi in test.measured.kpis] == [0]


@pytest.mark.slow
def test_variants_run_each_test_that_they_concern_once(tmp_path: Path) -> None:
    fabric = subject(tmp_path, LEAF_SPINE, **LOSSLESS)
    variants = [Variant("rc", "ecmp"), Variant("uet-rud", "ecmp"), Variant("uet-rud", "spray")]
    report = run_bench(
        TRAINING, fabric, tmp_path / "out", tests=TRAINING.chosen(["8.3", "11.1", "6.3"]), variants=variants
    )
    ran = sorted((test.section, test.variant) for test in report.tests)
    assert ran == [
        ("11.1", "RoCEv2 RC + ECMP"),
        ("11.1", "UET RUD + ECMP"),
        ("11.1", "UET RUD + packet spray"),
        ("6.3", ""),
        ("8.3", "RoCEv2 RC"),
        ("8.3", "UET RUD"),
    ]
    assert report.ok
    assert set(report.configuration) >= {"RoCEv2 RC + ECMP", "UET RUD + ECMP", "UET RUD + packet spray"}


def test_a_fault_of_a_test_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = subject(tmp_path, LEAF_SPINE, **LOSSLESS)
    broken, other = TRAINING.chosen(["8.3", "7.2"])

    def fails(self: object, setup: object) -> object:
        raise ZeroDivisionError("of the test")

    monkeypatch.setattr(type(broken), "run", fails)
    report = run_bench(TRAINING, fabric, tmp_path / "out", tests=[broken, other])
    statuses = {test.section: test.status for test in report.tests}
    assert statuses == {broken.section: Status.FAILED, other.section: Status.MEASURED}
    assert not report.ok
    assert any("ZeroDivisionError: of the test" in line for line in parts.anomalies(report))
