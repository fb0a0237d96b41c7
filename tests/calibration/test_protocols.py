"""Fits find the latencies and thresholds of NCCL's protocols again, and show residuals by protocol."""

from __future__ import annotations

from typing import Any

import pytest

from tests.calibration.nccl_tests import measured, times_ps
from weft.calibration import Calibration, HoldOut, calibrate
from weft.calibration.keys import KEYS
from weft.calibration.printing import remarks
from weft.errors import BadInputError
from weft.quantities.units import parse_rate_bps, parse_size_bytes, parse_time_ps
from weft.scenario import parse_scenario

SIZES = [2**power for power in range(12, 25)]
TREE: dict[str, Any] = {
    "fabric": {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2, "ranks_per_host": 4, "host_rate": "100Gb/s"},
    "traffic": [{"collective": "allreduce", "algorithms": ["ring"], "ranks": [0, 1, 2, 3], "protocol": "auto"}],
}
TRUTH = {
    "fabric.scale_up.rate": "1500Gb/s",
    "protocols.ll_scale_up_latency": "2300ns",
    "protocols.ll128_scale_up_latency": "5100ns",
    "protocols.simple_scale_up_latency": "11us",
    "protocols.ll_up_to": "64KiB",
    "protocols.ll128_up_to": "1MiB",
}
SLACK = 1.004
"""Measured times are so much longer in turn, as no model meets them exactly."""


def true_value(name: str) -> int:
    if name.endswith("up_to"):
        return parse_size_bytes(TRUTH[name])
    return parse_rate_bps(TRUTH[name]) if name.endswith("rate") else parse_time_ps(TRUTH[name])


@pytest.fixture(scope="module")
def recovered() -> Calibration:
    [times] = times_ps(TREE, TRUTH, SIZES)
    scattered = [time * (SLACK if place % 2 else 1) for place, time in enumerate(times)]
    return calibrate([measured("allreduce", 4, SIZES, scattered)], TREE, hold_out=HoldOut(0, (8192, 131072, 8 * 2**20)))


@pytest.mark.parametrize("name", TRUTH)
def test_known_costs_and_thresholds_come_back(recovered: Calibration, name: str) -> None:
    [found] = [each.after for each in recovered.keys if each.key.name == name]
    assert found == pytest.approx(true_value(name), rel=0 if name.endswith("up_to") else 0.02)


def test_the_keys_are_those_of_the_protocols(recovered: Calibration) -> None:
    assert {each.key.name for each in recovered.keys} == set(TRUTH)
    assert not any(each.at_bound for each in recovered.keys)
    assert recovered.undetermined == ()


def test_held_out_sizes_are_predicted(recovered: Calibration) -> None:
    assert recovered.poor == []
    summary = recovered.summary(True)
    assert summary is not None
    assert summary[1] < 0.01


def test_residuals_are_shown_by_protocol(recovered: Calibration) -> None:
    assert recovered.protocols == ["ll", "ll128", "simple"]
    said = list(remarks(recovered))
    for protocol in recovered.protocols:
        [line] = [each for each in said if each.startswith(f"{protocol}, fitted sizes: median residual 0.")]
        assert "held-out sizes" in line
    rows = recovered.as_dict()["tables"][0]["rows"]
    limits = [true_value("protocols.ll_up_to"), true_value("protocols.ll128_up_to")]
    for row in rows:
        assert row["protocol"] == ["ll", "ll128", "simple"][sum(row["size_bytes"] > each for each in limits)]


def test_the_written_values_are_those_that_ran(recovered: Calibration) -> None:
    assert recovered.fitted()["protocols.ll_up_to"] == "64KiB"
    [(_, rows)] = recovered.tables
    [times] = times_ps(TREE, recovered.fitted(), SIZES)
    assert times == [row.after_ps for row in rows]


def test_a_named_protocol_has_no_thresholds() -> None:
    tree = TREE | {"traffic": [TREE["traffic"][0] | {"protocol": "ll"}]}
    sizes = SIZES[::4]
    [times] = times_ps(tree, {"protocols.ll_scale_up_latency": "4us"}, sizes)
    found = calibrate([measured("allreduce", 4, sizes, times)], tree, hold_out=HoldOut(0))
    assert [each.key.name for each in found.keys] == ["fabric.scale_up.rate", "protocols.ll_scale_up_latency"]
    assert found.keys[1].after == pytest.approx(4_000_000, rel=0.02)


def test_a_threshold_without_effect_keeps_its_value() -> None:
    tree = TREE | {"traffic": [TREE["traffic"][0] | {"protocol": "simple"}]}
    sizes = SIZES[::4]
    [times] = times_ps(tree, {}, sizes)
    keys = ["protocols.simple_scale_up_latency", "protocols.ll_up_to"]
    found = calibrate([measured("allreduce", 4, sizes, times)], tree, keys=keys, hold_out=HoldOut(0))
    assert "protocols.ll_up_to" not in found.fitted()
    assert "protocols.ll_up_to: the fitted sizes do not depend on it" in "\n".join(remarks(found))


@pytest.mark.parametrize(
    ("key", "held", "true", "expected"),
    [
        ("protocols.ll_up_to", {"ll128_up_to": "64KiB"}, {"ll_up_to": "16MiB", "ll128_up_to": "16MiB"}, 2**16),
        ("protocols.ll128_up_to", {"ll_up_to": "64KiB"}, {"ll_up_to": 0, "ll128_up_to": 0}, 2**16),
    ],
)
def test_a_fitted_threshold_stays_in_order_with_one_of_the_scenario(
    key: str, held: dict[str, Any], true: dict[str, Any], expected: int
) -> None:
    sizes = SIZES[::4]
    [times] = times_ps(TREE, {f"protocols.{name}": value for name, value in true.items()}, sizes)
    tree = TREE | {"protocols": held}
    found = calibrate([measured("allreduce", 4, sizes, times)], tree, keys=[key], hold_out=HoldOut(0))
    assert [each.after for each in found.keys] == [expected]
    times_ps(tree, found.fitted(), sizes)


@pytest.mark.parametrize(
    ("name", "held", "start", "shown"),
    [
        ("protocols.ll_up_to", None, 2**16, "predicted"),
        ("protocols.ll128_up_to", 3000, 3000, "2.93 KiB"),
        ("protocols.ll_latency", 2_700_000, 2_700_000, "2.7 µs"),
    ],
)
def test_a_fit_begins_at_the_values_in_force(name: str, held: int | None, start: int, shown: str) -> None:
    scenario = parse_scenario(TREE | {"protocols": {"ll128_up_to": 3000}})
    key = KEYS[name]
    assert (key.held_by(scenario), key.start(scenario), key.shown(held)) == (held, start, shown)


def test_latencies_within_hosts_need_several_ranks_a_host() -> None:
    tree = TREE | {"fabric": {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 4}, "traffic": []}
    with pytest.raises(BadInputError):
        calibrate([], tree, keys=["protocols.ll_scale_up_latency"])
