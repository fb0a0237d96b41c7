"""The small rows of docs/in-network.md are what its benchmark finds, and what it is to show holds there."""

from __future__ import annotations

import argparse
import re

import bench_in_network as bench
import pytest

from weft.paths import ROOT
from weft.topologies import leaf_spine

ALGORITHMS = ("in-network", "ring", "tree", "halving-doubling")


def rows_of_table(first_cell: str) -> list[list[str]]:
    """The rows below the line of the page that begins with a cell."""
    lines = (ROOT / "docs/in-network.md").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first_cell} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def bytes_of(text: str) -> int:
    """A size as the page has it."""
    number, unit = re.fullmatch(r"(\d+) (B|KiB|MiB|GiB)", text).groups()  # type: ignore[union-attr]
    return int(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]


@pytest.mark.slow
def test_times_by_size_are_those_of_the_page() -> None:
    rows = [row for row in rows_of_table("8 ranks, 100 Gb/s") if bytes_of(row[0]) <= 1 << 16]
    cases = [(name, bytes_of(row[0])) for row in rows for name in ALGORITHMS]
    found = list(bench.rows_of("sizes", bench.fabric_of(8, 100), cases))
    for number, row in enumerate(rows):
        of_size = found[number * len(ALGORITHMS) : (number + 1) * len(ALGORITHMS)]
        assert row[1:5] == [f"{each.time_us:,.1f}" for each in of_size]


@pytest.mark.slow
def test_small_all_reduces_take_the_same_time_for_any_number_of_ranks() -> None:
    times = {
        ranks: next(bench.rows_of("ranks", bench.fabric_of(ranks, 100), [("in-network", 8)])).time_us
        for ranks in (4, 16, 64)
    }
    assert max(times.values()) < 1.05 * min(times.values())
    rows = {row[0]: row[1] for row in rows_of_table("8 B, ranks")}
    assert {str(ranks): f"{time_us:,.1f}" for ranks, time_us in times.items()} == {
        ranks: rows[ranks] for ranks in ("4", "16", "64")
    }


@pytest.mark.slow
def test_times_of_parameter_servers_are_those_of_the_page() -> None:
    rows = {bytes_of(row[0]): row for row in rows_of_table("8 workers")}
    for size_bytes in (1 << 12, 1 << 20):
        found = [bench.row_of_servers(bench.fabric_of(8, 100), servers, size_bytes) for servers in (1, 8)]
        assert rows[size_bytes][3:] == [f"{each.time_us:,.1f}" for each in found]


def test_one_wide_spine_spares_halving_doubling_its_collisions() -> None:
    topology = leaf_spine(
        planes=1,
        leaves=2,
        spines=1,
        hosts_per_leaf=4,
        host_rate_bps=100e9,
        fabric_rate_bps=400e9,
        queue_capacity_bytes=bench.QUEUE_CAPACITY_BYTES,
    )
    (row,) = bench.rows_of("sizes", topology, [("halving-doubling", 1 << 20)])
    assert f"1 MiB on 8 ranks takes {row.time_us:.1f} µs" in (ROOT / "docs/in-network.md").read_text()


@pytest.mark.slow
def test_the_published_sizes_are_those_of_the_page() -> None:
    found = {
        (row.part, row.size_bytes, row.algorithm): f"{row.time_us:.2f}"
        for row in bench.beside_sharp(argparse.Namespace())
    }
    rows = rows_of_table("128 hosts")
    for row in rows[2:]:
        part = "sharp" if "assumed" in row[0] else "sharp, no host costs"
        for size_bytes, hosts, switches in ((8, row[1], row[2]), (4096, row[4], row[5])):
            assert switches == found[part, size_bytes, "in-network"]
            assert hosts == found[part, size_bytes, "halving-doubling"]


def test_a_picture_has_a_panel_for_each_part() -> None:
    rows = [
        bench.Row(part, 8, 100.0, size, loss, name, 10.0, 0.5, 0)
        for name in ALGORITHMS[:2]
        for part, size, loss in (("sizes", 1024, 0), ("ranks", 8, 0), ("loss", 1 << 20, 0.01))
    ]
    picture = bench.picture(rows)
    assert picture.count("<clipPath") == 3
    for label in ("10⁻²", "1 MiB", "1,024"):
        assert f">{label}</text>" in picture
