"""Fits recover known values, predict sizes that they have not seen, and say what they cannot tell.

WEFT_SUPERBENCH_CLONE names a local clone of microsoft/superbenchmark, which has logs of a DGX A100.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.calibration.nccl_tests import POD, SIZES, TRUTH, measured, times_ps, tree_of
from weft.calibration import Calibration, HoldOut, MeasuredTable, calibrate, read_log
from weft.calibration.fit import POOR_FIT, undetermined
from weft.calibration.keys import KEYS, round_significant
from weft.calibration.printing import remarks
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.quantities.units import parse_rate_bps, parse_time_ps
from weft.scenario import parse_scenario

FEW = SIZES[::2]
OVERHEADS = {name: TRUTH[name] for name in ("nic.per_message_overhead", "nic.per_packet_overhead")}


def tables_of(
    tree: dict[str, Any], values: dict[str, str], sizes: list[int], ranks: tuple[int, ...] = (8, 4)
) -> list[MeasuredTable]:
    times = times_ps(tree, values, sizes)
    names = [item["collective"] for item in tree["traffic"]]
    return [
        measured(name, count, sizes, mine, path=f"{name}-{count}.log")
        for name, count, mine in zip(names, ranks, times, strict=True)
    ]


@pytest.fixture(scope="module")
def recovered() -> Calibration:
    tree = tree_of()
    return calibrate(tables_of(tree, TRUTH, FEW), tree)


def first_item_only() -> dict[str, Any]:
    tree = tree_of()
    del tree["traffic"][1]
    return tree


@pytest.mark.parametrize("name", TRUTH)
def test_known_values_are_recovered(recovered: Calibration, name: str) -> None:
    [found] = [each.after for each in recovered.keys if each.key.name == name]
    true = (parse_rate_bps if name.endswith("rate") else parse_time_ps)(TRUTH[name])
    assert found == pytest.approx(true, rel=0.01)


def test_sizes_held_out_are_predicted(recovered: Calibration) -> None:
    rows = [row for _, rows in recovered.tables for row in rows]
    assert {row.size_bytes for row in rows if row.held_out} == {FEW[1], FEW[4]}
    assert recovered.poor == []
    for held_out in (False, True):
        summary = recovered.summary(held_out)
        assert summary is not None
        assert summary[1] < 0.005
    assert max(abs(row.residual_before) for row in rows) > 0.5
    assert recovered.undetermined == ()


def test_a_fit_is_the_same_again(recovered: Calibration) -> None:
    tree = tree_of()
    assert calibrate(tables_of(tree, TRUTH, FEW), tree).as_dict() == recovered.as_dict()


@pytest.mark.skipif(
    not os.environ.get("WEFT_SUPERBENCH_CLONE"),
    reason="WEFT_SUPERBENCH_CLONE names no clone of microsoft/superbenchmark",
)
@pytest.mark.parametrize("protocol", [None, "auto"])
def test_a_dgx_fits_as_badly_as_the_page_says(protocol: str | None) -> None:
    """Eight A100 with NCCL's own choice of protocols, which one set of costs does not meet."""
    log = Path(os.environ["WEFT_SUPERBENCH_CLONE"]) / "tests" / "data" / "nccl_allreduce.log"
    fabric = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2, "ranks_per_host": 8, "host_rate": "200Gb/s"}
    tree = {
        "fabric": fabric | {"scale_up": {"rate": "2400Gb/s"}},
        "traffic": [{"collective": "allreduce", "algorithms": ["ring"], "ranks": list(range(8)), "protocol": protocol}],
    }
    keys = () if protocol else ("fabric.scale_up.rate", "fabric.scale_up.latency")
    found = calibrate(read_log(log), tree, keys=keys, least_bytes=4096, most_bytes=64 * 2**20)
    page = (ROOT / "docs" / "calibrate.md").read_text(encoding="utf-8")
    fitted, held_out = (found.summary(is_held_out) for is_held_out in (False, True))
    assert fitted is not None
    assert held_out is not None
    said = (
        f"have a median of {100 * fitted[0]:.0f} % and a maximum of {100 * fitted[1]:.0f} %, of held-out sizes "
        f"{100 * held_out[0]:.0f} % and {100 * held_out[1]:.0f} %"
    )
    if protocol:
        names = {"protocols.ll_up_to": "LL", "protocols.ll128_up_to": "LL128"}
        ends = {each.key.name: each.key.shown(each.after) for each in found.keys}
        said += ": " + ", ".join(f"{name} up to {ends[key]}" for key, name in names.items())
    assert said in " ".join(page.split())


def test_keys_without_effect_keep_their_values() -> None:
    tree = first_item_only()
    # A ring over both hosts waits for its NICs, whatever the links within hosts cost.
    found = calibrate(tables_of(tree, OVERHEADS, FEW, (8,)), tree, hold_out=HoldOut(0))
    assert set(found.fitted()) == set(OVERHEADS)
    assert [each.after for each in found.keys[2:]] == [None, None]
    assert "fabric.scale_up.rate: the fitted sizes do not depend on it" in "\n".join(remarks(found))
    assert found.summary(True) is None


def test_keys_that_cannot_be_told_apart_are_named() -> None:
    tree = first_item_only()
    small = FEW[:3]
    found = calibrate(
        tables_of(tree, {"nic.per_message_overhead": "2us"}, small, (8,)),
        tree,
        keys=["nic.per_message_overhead", "nic.dma_latency"],
        hold_out=HoldOut(0),
    )
    assert found.undetermined == (("nic.per_message_overhead", "nic.dma_latency"),)
    assert "do not tell them apart" in "\n".join(remarks(found))


def test_three_effects_in_a_plane_are_undetermined_together() -> None:
    one, two = np.array([1.0, 0.0, 1.0, 0.2]), np.array([0.0, 1.0, 0.3, 1.0])
    assert undetermined("abc", np.stack([one, two, one + two], axis=1)) == (("a", "b", "c"),)
    assert undetermined("ab", np.stack([one, two], axis=1)) == ()
    assert undetermined("ab", np.stack([one, 0 * two], axis=1)) == ()


def test_a_poor_fit_is_shown_and_named() -> None:
    tree = first_item_only()
    # No overhead makes the largest size fast and the others slow.
    table = measured("allreduce", 8, FEW, [100e6, 100e6, 100e6, 100e6, 100e6, 1e6], path="odd.log")
    found = calibrate([table], tree, keys=["nic.per_message_overhead"], hold_out=HoldOut(0))
    assert any(abs(row.residual) > POOR_FIT for _, row in found.poor)
    said = "\n".join(remarks(found))
    assert f"poor fit, above {100 * POOR_FIT:.0f} %: allreduce of 8 ranks, 4MiB" in said


@pytest.mark.parametrize(
    ("change", "keywords", "said"),
    [
        ({}, {"keys": ["nic.overhead"]}, "is no key to fit"),
        ({}, {"keys": ["nic.dma_latency"] * 2}, "is given twice"),
        ({}, {"hold_out": HoldOut(0, (3000,))}, "--hold-out: 3000B was not measured"),
        ({}, {"hold_out": HoldOut(0, tuple(FEW[1:]))}, "1 sizes are too few to fit 4 keys"),
        ({}, {"most_bytes": 1024}, "no size of allreduce of 8 ranks can be compared: 6 above 1KiB (--most)"),
        ({"ranks": 16}, {}, "allreduce of 16 ranks was measured, which the scenario's traffic lacks (valid: allr"),
        ({"algorithms": None}, {}, "traffic[0].algorithms: needs one algorithm"),
        ({"twice": True}, {}, "which traffic[0], traffic[1] all are: keep one"),
        ({"traffic": [{"incast": "h0"}]}, {}, "the traffic has no collective"),
    ],
)
def test_what_does_not_belong_together_is_refused(change: dict[str, Any], keywords: dict[str, Any], said: str) -> None:
    tree = first_item_only()
    if "algorithms" in change:
        del tree["traffic"][0]["algorithms"]
    if "twice" in change:
        tree["traffic"] *= 2
    tree["traffic"] = change.get("traffic", tree["traffic"])
    table = measured("allreduce", change.get("ranks", 8), FEW, [1e6] * len(FEW))
    with pytest.raises(BadInputError) as caught:
        calibrate([table], tree, str(POD), **keywords)
    assert said in str(caught.value)


def test_scale_up_needs_several_ranks_a_host() -> None:
    tree = {
        "fabric": {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2},
        "traffic": [{"collective": "reduce"}],
    }
    with pytest.raises(BadInputError, match=r"needs fabric\.ranks_per_host"):
        calibrate([], tree, keys=["fabric.scale_up.rate"])


def test_sizes_that_cannot_run_are_left_out_with_the_reason() -> None:
    tree = first_item_only()
    sizes = [2, 16, 6000, *FEW[:3], 32 * 2**20]
    table = measured("allreduce", 8, sizes, [20e6 + size * 1e3 for size in sizes])
    found = calibrate([table], tree, keys=["nic.per_message_overhead"], least_bytes=8)
    compared, rows = found.tables[0]
    assert {reason: list(each) for reason, each in compared.left_out.items()}["below 8B (--least)"] == [2]
    assert compared.left_out["above 16MiB (--most)"] == (32 * 2**20,)
    assert [row.size_bytes for row in rows] == list(compared.sizes)


@pytest.mark.parametrize(
    ("text", "held"),
    [("none", []), ("1/2", [1, 3]), ("1/3", [1, 4]), ("16K,64K", [2, 4])],
)
def test_sizes_are_held_out(text: str, held: list[int]) -> None:
    sizes = [2**power for power in range(12, 18)]
    assert HoldOut.of(text).of_table(sizes) == {sizes[place] for place in held}


@pytest.mark.parametrize("text", ["1/1", "half", "", "4K:1K:2"])
def test_a_wrong_choice_of_sizes_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="--hold-out"):
        HoldOut.of(text)


@pytest.mark.parametrize(
    ("name", "held", "start"),
    [
        ("nic.per_message_overhead", 0, 0),
        ("nic.pcie_rate", None, 2 * 25 * 10**9),
        ("fabric.host_rate", 25 * 10**9, 25 * 10**9),
        ("fabric.scale_up.rate", 3600 * 10**9, 3600 * 10**9),
        ("fabric.scale_up.latency", 500_000, 500_000),
    ],
)
def test_a_fit_begins_at_the_values_in_force(name: str, held: int | None, start: int) -> None:
    scenario = parse_scenario({"fabric": {"planes": 2, "ranks_per_host": 2, "host_rate": 25 * 10**9}})
    assert (KEYS[name].held_by(scenario), KEYS[name].start(scenario)) == (held, start)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_scales_of_keys_go_both_ways_within_bounds(key: Any) -> None:
    for value in key.trials(round_significant(max(key.bounds[0], key.bounds[1] // 7))):
        assert key.value(key.position(value)) == pytest.approx(value, rel=1e-3)
    assert key.value(-1e3) == key.bounds[0]
    assert key.value(1e2) == key.bounds[1]
