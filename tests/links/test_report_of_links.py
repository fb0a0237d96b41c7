"""What faults and credits did, in a run's report."""

from __future__ import annotations

from pathlib import Path

from weft.report.run_directory import RunDirectory
from weft.report.tables import all_tables
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario


def test_a_report_shows_faults_and_credits(tmp_path: Path) -> None:
    result = run_scenario(
        parse_scenario(
            {
                "clock": "virtual",
                "fabric": {
                    "planes": 1,
                    "leaves": 1,
                    "spines": 0,
                    "hosts_per_leaf": 3,
                    "host_rate": "100Gbps",
                },
                "credits": {"classes": [3], "buffer": "4KB"},
                "faults": {"links": [{"link": "p0l0->h0", "bit_error_rate": 1e-6}]},
                "traffic": [{"incast": "h0", "bytes_per_sender": "256KiB"}],
            }
        )
    )
    result.save(tmp_path)
    tables = all_tables(RunDirectory.read(tmp_path))
    (struck,) = result.link_faults
    assert tables["link_faults"].rows == [["p0l0->h0", 0, struck.corrupted_packets, 0, 0]]
    (credits,) = tables["credits"].rows
    assert credits[:3] == [0, result.credits[0].updates_sent, result.credits[0].stalls]
    assert credits[2] != 0
