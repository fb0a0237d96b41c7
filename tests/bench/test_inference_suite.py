"""The inference suite on a small fabric: every test at its smallest, and what must hold of what it finds."""

from __future__ import annotations

import pytest

from weft.bench import model
from weft.bench.model import BenchReport, Status
from weft.bench.profile import Profile
from weft.bench.running import run_bench
from weft.bench.subject import read_subject
from weft.bench.suites import SUITES

pytestmark = pytest.mark.timeout(1800)

SUITE = SUITES["inference"]
FABRIC = """
name: small
fabric: {planes: 1, leaves: 2, spines: 2, hosts_per_leaf: 2, host_rate: 400Gb/s, delay: 500ns}
mtu: 4096
int: false
transport: {congestion_control: dcqcn}
pfc: {classes: [3]}
"""
LINE_GBYTES_PER_S = 50.0
HOSTS = 4
NOT_APPLICABLE = {
    "6.3": "accelerator each",
    "13.2": "memory",
}
"""Tests that the fabric cannot have, and a word of the reason."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> BenchReport:
    folder = tmp_path_factory.mktemp("inference")
    file = folder / "fabric.yaml"
    file.write_text(FABRIC, encoding="utf-8")
    return run_bench(SUITE, read_subject(file), folder / "out", profile=Profile.SMOKE)


def of(report: BenchReport, section: str) -> model.TestReport:
    (found,) = (test for test in report.tests if test.section == section)
    return found


def values(report: BenchReport, kpi: str) -> list[float]:
    return [value.value for test in report.tests for value in test.measured.kpis if value.kpi == kpi]


def column(report: BenchReport, section: str, name: str, table: int = 0) -> list[float]:
    found = of(report, section).measured.tables[table]
    return [float(row[list(found.columns).index(name)]) for row in found.rows]


@pytest.mark.slow
def test_every_test_is_measured_or_says_why_not(report: BenchReport) -> None:
    assert [(test.section, test.reason) for test in report.tests if test.status is Status.FAILED] == []
    refused = {test.section: test.reason for test in report.tests if test.status is Status.NOT_APPLICABLE}
    assert set(refused) == set(NOT_APPLICABLE)
    assert all(word in refused[section] for section, word in NOT_APPLICABLE.items())
    for test in report.tests:
        if test.status is Status.MEASURED:
            assert test.measured.tables
            assert all(table.rows and len(set(map(len, table.rows))) == 1 for table in test.measured.tables)
            assert all(len(table.rows[0]) == len(table.columns) for table in test.measured.tables)
            assert test.measured.scaled
            assert test.trials > 0


@pytest.mark.slow
def test_every_kpi_is_measured_by_its_tests(report: BenchReport) -> None:
    for kpi in SUITE.kpis:
        for section in kpi.sections:
            test = of(report, section)
            if test.status is Status.MEASURED:
                assert kpi.name in {value.kpi for value in test.measured.kpis}, (kpi.name, section)
    known = {kpi.name for kpi in SUITE.kpis}
    assert {value.kpi for test in report.tests for value in test.measured.kpis} <= known


@pytest.mark.slow
def test_figures_are_within_what_the_fabric_can_do(report: BenchReport) -> None:
    assert all(0 < value < LINE_GBYTES_PER_S * HOSTS / 2 for value in values(report, "KV_xfer_bandwidth"))
    assert max(column(report, "5.1", "GB/s, 1 QP")) > 0.9 * LINE_GBYTES_PER_S
    # A block of 1 MiB takes 20.97 us at line rate, and four links of 500 ns; its acknowledgement as many.
    assert all(value > 20.97 + 4 for value in values(report, "Fabric_FCT")[:2])
    assert min(values(report, "KV_xfer_latency")) > 20.97
    assert all(0 < value < LINE_GBYTES_PER_S * HOSTS for value in values(report, "EP_alltoall_bandwidth"))
    for name in ("Buffer_utilization", "ECN_marking_rate", "Link_utilization", "Prefix Cache Hit Rate"):
        assert all(0 <= value <= 100 for value in values(report, name)), name
    assert all(value >= 0 for value in values(report, "Packet_drop_rate"))
    assert all(1 / HOSTS <= value <= 1 for value in values(report, "JFI (Decode Worker)"))
    assert all(value > 0 for value in values(report, "TTFT") + values(report, "ITL"))


@pytest.mark.slow
def test_latencies_add_up(report: BenchReport) -> None:
    """A lone request takes its prefill, its transfer and the first step of decode; longer prompts take longer."""
    first = column(report, "10.1", "TTFT P50")
    parts = (column(report, "10.1", name) for name in ("T_prefill", "T_transfer P50", "T_decode_init"))
    assert [sum(row) for row in zip(*parts, strict=True)] == pytest.approx(first, rel=1e-2)
    assert first == sorted(first)
    # 4,096 B of a token at 50 GB/s.
    prompts = column(report, "10.1", "prompt")
    for tokens, transfer_ms in zip(prompts, column(report, "10.1", "T_transfer P50"), strict=True):
        assert transfer_ms > tokens * 4096 / 50e6


@pytest.mark.slow
def test_what_should_help_helps(report: BenchReport) -> None:
    aware = column(report, "9.2", "fabric bytes saved (%)")
    assert aware == sorted(aware)
    assert aware[0] > 0
    assert all(value > 0 for value in column(report, "9.2", "TTFT saved, mean (ms)"))
    static, continuous = (column(report, "11.2", "TPS_output", table) for table in (0, 1))
    assert continuous[-1] > static[-1]
    assert continuous[0] == pytest.approx(static[0])
    within = column(report, "11.3", "requests within (%)")
    assert within[-1] <= within[0]


@pytest.mark.slow
def test_a_failed_link_loses_packets_and_recovers(report: BenchReport) -> None:
    assert all(value > 0 for value in values(report, "Packet_drop_rate")[-1:])
    lost, recovered = (column(report, "12.3", name) for name in ("packets lost", "recovered after (ms)"))
    assert all(packets > 0 for packets in lost)
    assert all(0 < time < 10 for time in recovered)
