"""The benchmark of traces reads what it has made."""

from __future__ import annotations

from pathlib import Path

import bench_traces
import pytest

from weft.jobs.traces import write_trace


@pytest.mark.parametrize("format_name", ["goal", "chakra"])
@pytest.mark.parametrize("ranks", [2, 5])
def test_all_nodes_are_read(tmp_path: Path, format_name: str, ranks: int):
    path = tmp_path / ("trace.goal" if format_name == "goal" else "trace")
    write_trace(bench_traces.job_of(400, ranks), path, format_name)
    assert bench_traces.measure(path, format_name)["operations"] == 400
