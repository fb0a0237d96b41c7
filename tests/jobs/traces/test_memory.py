"""A trace is refused before memory runs out, with the place up to which it was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.jobs.traces import memory, read_trace, write_trace
from weft.jobs.traces.errors import TraceError
from weft.traffic.jobs import Job, OperationsBuilder, RankPart

OPERATIONS = 40


@pytest.fixture
def little_memory(monkeypatch):
    """Checks come every eighth statement, and there is memory for twenty operations."""
    for module in ("goal", "chakra"):
        monkeypatch.setattr(f"weft.jobs.traces.{module}.reading.STATEMENTS_BETWEEN_CHECKS", 8)
    left = memory._SPARE_BYTES + 20 * memory.BYTES_PER_OPERATION
    monkeypatch.setattr(memory, "available_bytes", lambda: left)


def a_job() -> Job:
    builder = OperationsBuilder()
    for number in range(OPERATIONS):
        builder.compute(1000, after=[number - 1] if number else [])
    return Job("job", (RankPart(builder.build()),))


@pytest.mark.parametrize(
    ("name", "place"), [("goal", r"trace.goal, line \d+: rank 0"), ("chakra", r"trace.0.et: node \d+")]
)
def test_a_trace_beyond_the_memory(tmp_path: Path, little_memory, name: str, place: str):
    path = tmp_path / ("trace.goal" if name == "goal" else "trace")
    write_trace(a_job(), path, name)
    with pytest.raises(TraceError, match=rf"{place}: 2\d operations up to here need .* MiB are available"):
        read_trace(path, name)


def test_the_memory_of_this_machine_suffices(tmp_path: Path):
    assert memory.available_bytes() > 0
    write_trace(a_job(), tmp_path / "trace.goal", "goal")
    job = read_trace(tmp_path / "trace.goal").job
    assert job is not None
    assert job.operation_count == OPERATIONS
