"""Ports count as many packets as the closed forms say, and docs/in-network.md has both."""

from __future__ import annotations

import bench_packet_hops as bench
import pytest

from weft.paths import ROOT


def rows_of_page(ranks: int) -> list[list[str]]:
    lines = (ROOT / "docs/in-network.md").read_text().splitlines()
    start = lines.index(next(line for line in lines if line.startswith("| ranks | algorithm | data |")))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start + 2 : start + 10]]
    return [row[1:] for row in rows if row[0] == str(ranks)]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", bench.RANKS)
def test_ports_count_the_closed_forms(ranks: int) -> None:
    rows = list(bench.rows_of(ranks))
    for row in rows:
        assert row.counted == row.data + row.acknowledgements
    in_network = rows[0].counted
    assert [list(bench.cells(row, in_network)) for row in rows] == rows_of_page(ranks)


def test_closed_forms_of_the_page() -> None:
    for ranks, per_leaf in ((8, 4), (64, 8), (16, 16)):
        place = bench.Place(ranks, per_leaf)
        crossing = place.leaves if place.leaves > 1 else 0
        assert bench.of_ring(place) == 2 * (ranks - 1) * (2 * ranks + 2 * crossing) / ranks
        assert bench.of_switches(place) == 2 * (ranks + place.leaves)
        distances = [1 << bit for bit in range(ranks.bit_length() - 1)]
        assert bench.of_halving(place) == ranks * sum((2 if d < per_leaf else 4) / d for d in distances)
