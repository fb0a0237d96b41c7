"""What docs/scale-up.md says holds on small fabrics: shares of wire, a lost link, bit errors, contention."""

from __future__ import annotations

from typing import Any

import bench_scale_up
import pytest

from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import load_scenario
from weft.topologies.scale_up_systems import SYSTEMS
from weft.traffic.aggregation_format import frame_bytes

SUM_SHARE = 1024 / frame_bytes(4, 256)
"""Share of data in a packet of a sum."""


def rows_of(part: str, *options: str) -> list[bench_scale_up.Row]:
    arguments = bench_scale_up.parser().parse_args([part, "--accelerators", "4", *options])
    found: Any = bench_scale_up._PART_OF[part]
    return list(found(arguments))


def test_the_switches_fill_the_links_and_a_ring_sends_each_byte_nearly_twice() -> None:
    rows = {row.name: row for row in rows_of("sizes", "--systems", "dgx-h100", "--sizes", str(1 << 20))}
    ideal = 450 * SUM_SHARE * 2 * 7 / 8
    assert all(row.wrong == 0 for row in rows.values())
    assert 0.75 * ideal < rows["nvls"].busbw_gbytes_per_s < ideal
    assert rows["nvls"].time_us < rows["tree"].time_us
    assert rows["nvls"].time_us < rows["ring"].time_us
    assert rows["ring"].busbw_gbytes_per_s < 450 * 1024 / 1082
    assert "<path" in bench_scale_up.picture(list(rows.values()))


@pytest.mark.slow
def test_the_page_has_the_example_s_figures() -> None:
    page = (ROOT / "docs" / "scale-up.md").read_text(encoding="utf-8")
    result = run_scenario(load_scenario(ROOT / "examples" / "scale_up" / "dgx_h100.yaml"))
    assert result.ok
    assert not result.drops
    for each in result.collectives:
        if each.algorithm != "in-network":
            bandwidths = (each.size_bytes / each.time_ps * 1e3, each.busbw_bytes_per_s / 1e9)
            cells = " | ".join([f"{each.time_ps / 1e6:.1f}", *(f"{bandwidth:.2f}" for bandwidth in bandwidths)])
            assert f"| {each.algorithm} | {cells} |" in page


def test_switches_inside_hosts_are_faster_than_messages() -> None:
    names = ("nvls", "nvls-tree", "nvls-in-network", "hierarchical", "ring")
    rows = rows_of("hosts", "--hosts", "1", "2", "--sizes", str(4 << 20), "--host-algorithms", *names)
    time_us = {(row.accelerators, row.name): row.time_us for row in rows}
    assert {name for ranks, name in time_us if ranks == 8} == {"nvls", "hierarchical", "ring"}
    # All data once over a link of 450 GB/s, and 500 ns.
    assert time_us[8, "nvls"] == pytest.approx((4 << 20) / 450e3 + 0.5, rel=0.001)
    for ranks in (8, 16):
        assert time_us[ranks, "nvls"] < time_us[ranks, "hierarchical"]
        assert time_us[ranks, "nvls"] < time_us[ranks, "ring"]
    # Two hosts: a NIC of 50 GB/s carries an eighth.
    least_us = (4 << 20) / 8 / 50e3
    assert all(least_us < time_us[16, name] for name in names)
    assert all(time_us[16, name] < time_us[16, "hierarchical"] for name in ("nvls-tree", "nvls-in-network"))


@pytest.mark.slow
def test_the_page_has_the_figures_of_hosts() -> None:
    page = (ROOT / "docs" / "scale-up.md").read_text(encoding="utf-8")
    names = ("nvls", "nvls-tree", "nvls-in-network", "hierarchical", "ring")
    rows = rows_of("hosts", "--hosts", "1", "2", "4", "--sizes", str(1 << 20), "--host-algorithms", *names)
    for hosts in (1, 2, 4):
        own = [row for row in rows if row.accelerators == 8 * hosts]
        found = {row.name: f"{row.busbw_gbytes_per_s:.1f} ({row.time_us:,.1f})" for row in own}
        assert "| 1 MiB | " + " | ".join(found.get(name, "–") for name in names) + " |" in page


@pytest.mark.slow
def test_after_a_lost_link_seventeen_of_eighteen_are_left() -> None:
    rows = rows_of("lost-link", "--size", str(2 << 20))
    whole, lost = rows[:3], rows[3:]
    assert all(row.wrong == 0 for row in rows)
    assert lost[0].time_us > whole[0].time_us
    links = SYSTEMS[bench_scale_up.LINKS].links
    for before, after in zip(whole[1:], lost[1:], strict=True):
        assert before.time_us / after.time_us == pytest.approx((links - 1) / links, rel=0.03)


@pytest.mark.slow
def test_links_send_again_what_bit_errors_spoil_and_accelerators_nothing() -> None:
    clean, retried, repeated = rows_of("bit-errors", "--size", str(1 << 18), "--rates", "0", "1e-6")
    assert clean.wrong == retried.wrong == repeated.wrong == 0
    assert ", 0 repeated by accelerators" in clean.note
    assert ", 0 repeated by accelerators" in retried.note
    assert ", 0 repeated by accelerators" not in repeated.note
    assert clean.time_us < retried.time_us < repeated.time_us


@pytest.mark.slow
def test_credits_lose_nothing_in_an_all_to_all_and_an_incast() -> None:
    rows = rows_of("contention", "--size", str(1 << 18))
    assert [row.name for row in rows] == ["alltoall", "incast"]
    assert all(row.note.endswith("; 0 drops") for row in rows)
