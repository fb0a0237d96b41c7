"""What docs/in-network.md says of ten jobs on shared spines holds for a small size; the tables themselves are slow."""

from __future__ import annotations

import bench_shared_spines as bench
import pytest

from weft.controller.placement import PLACEMENTS
from weft.paths import ROOT

PAGE = ROOT / "docs/in-network.md"
SMALL_BYTES = 1 << 19
NOTICED_US = (bench.CONTROL.detection + 3 * bench.CONTROL.latency // 2) / 1e6


def rows_of(headings: str) -> dict[str, list[str]]:
    """The cells of the table with these headings, by the first one."""
    lines = PAGE.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(headings))
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = cells
    return rows


def trees(outcome: bench.Outcome) -> str:
    return " ".join(map(str, outcome.trees.values()))


@pytest.fixture(scope="module")
def small() -> dict[str, list[bench.Outcome]]:
    return {name: bench.outcomes_of(name, size_bytes=SMALL_BYTES) for name in PLACEMENTS}


@pytest.mark.slow
@pytest.mark.one_part
def test_trees_are_where_the_page_says(small: dict[str, list[bench.Outcome]]) -> None:
    undisturbed, failed = rows_of("| placement | trees of"), rows_of("| placement | trees before")
    for name, (before, after) in small.items():
        assert undisturbed[name][0] == failed[name][0] == trees(before)
        assert failed[name][1:3] == [trees(after), str(sum(job.moved for job in after.jobs))]


@pytest.mark.slow
@pytest.mark.one_part
def test_all_results_are_exact(small: dict[str, list[bench.Outcome]]) -> None:
    assert all(job.exact for outcomes in small.values() for each in outcomes for job in each.jobs)


@pytest.mark.slow
@pytest.mark.one_part
def test_placement_by_load_makes_jobs_as_fast_as_alone(small: dict[str, list[bench.Outcome]]) -> None:
    (alone,) = bench.outcomes_of("load", size_bytes=SMALL_BYTES, running=1)
    slowest = {name: max(job.time_us for job in each.jobs) for name, (each, _) in small.items()}
    assert slowest["load"] < 1.01 * alone.jobs[0].time_us
    assert 1.5 * slowest["load"] < slowest["hash"] < slowest["first"] / 1.5
    assert small["load"][0].fairness > 0.999


@pytest.mark.slow
@pytest.mark.one_part
def test_moved_jobs_alone_pause_until_their_trees_are_written(
    small: dict[str, list[bench.Outcome]],
) -> None:
    _, after = small["load"]
    for job in after.jobs:
        assert job.root != after.failed
        if job.moved:
            assert NOTICED_US <= job.pause_us <= NOTICED_US + 3
        else:
            assert job.pause_us <= 2
    assert after.sent_again > 0
    assert bench.picture([each for outcomes in small.values() for each in outcomes]).count("<clipPath") == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACEMENTS)
def test_the_tables_are_what_the_benchmark_finds(name: str) -> None:
    before, after = bench.outcomes_of(name)
    assert rows_of("| placement | trees of")[name] == [
        trees(before),
        f"{before.fullest_uplink:.2f}",
        bench.span(job.time_us for job in before.jobs),
        f"{before.fairness:.3f}",
        f"{before.sum_gbps:,.0f}",
    ]
    moved = [job for job in after.jobs if job.moved]
    assert rows_of("| placement | trees before")[name] == [
        trees(before),
        trees(after),
        str(len(moved)),
        bench.span(job.pause_us for job in moved),
        bench.span(job.time_us for job in moved),
        bench.span(job.time_us for job in after.jobs if not job.moved),
        f"{after.sent_again:,}",
    ]
